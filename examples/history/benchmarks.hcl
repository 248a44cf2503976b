# benchgraph measured by benchgraph: commits of this very repository that claim to have made it faster, each against its
# parent and against a smaller patch of the same intent. Adding a commit is adding a block.

# Builds use the caches of Go in your home, which a sandbox hides. The commits are our own.
benchgraph {
  sandbox = "none"
}

repo "benchgraph" {
  path = "../.."
}

commit "faster-keys" {
  rev    = "20e452dc78de427bdd0079dcbe83ad4d26723485"
  title  = "cache: faster keys, for a plan makes one for every node"
  params = { package = "./cache", benchmark = "Key" }
}

commit "faster-start" {
  rev    = "5ad2ffff6184355e6b6d51e61fa653a505ad88a9"
  title  = "cache: faster start, for every command reads the digests of all files first"
  params = { package = "./cache", benchmark = "StatCacheLoad" }
}

variant "parent" {
  baseline = true
  rev      = each.commit.parent
}

variant "commit" {
  rev = each.commit.rev
}

variant "patch" {
  rev      = each.commit.parent
  patch    = "patches/${each.commit.name}.diff"
  optional = true
}

wheel "bench" {
  for_each = candidates
  source   = each.source
  build {
    command = "go test -c -o $OUT/bench.test ${each.commit.params.package}"
    env     = { GOFLAGS = "-buildvcs=false", GOTOOLCHAIN = "local" }
    timeout = "10m"
  }
  outputs = ["bench.test"]
}

benchmark "go" {
  for_each = candidates
  data     = { "bench.test" = wheel.bench[each.key] }
  command  = "./bench.test -test.run='^$' -test.bench='^Benchmark${each.commit.params.benchmark}$' -test.benchtime=100ms -test.count=3"
  timeout  = "2m"
  quiet    = true
  metrics {
    format  = "gobench"
    primary = "ns/op"
  }
}

compare "three_way" {
  of = [benchmark.go]
}

report "campaign" {
  of      = [compare.three_way]
  formats = ["markdown", "json", "csv", "benchfmt", "junit"]
}
