# A real redis-server, driven by the real redis-benchmark: does the append-only file cost throughput, and how much? The
# two configurations are the variants; every sample is a server of its own, started, measured and ended.

commit "redis" {
  title = "the redis-server of this machine"
}

variant "memory" {
  baseline = true
  params   = { directives = "save ''\nappendonly no" }
}

variant "append_only" {
  params = { directives = "save ''\nappendonly yes\nappendfsync always" }
}

# What differs between the variants is an artefact of its own, so that the commands that measure them are the same.
wheel "config" {
  for_each = candidates
  build {
    command = "printf '%s\\n' \"$DIRECTIVES\" > $OUT/redis.conf"
    env     = { DIRECTIVES = each.variant.params.directives }
  }
  outputs = ["redis.conf"]
}

benchmark "set" {
  for_each = candidates
  data     = { "redis.conf" = wheel.config[each.key] }
  server {
    command = "exec redis-server redis.conf --port $PORT --bind 127.0.0.1 --dir . --daemonize no"
    ready {
      log     = "Ready to accept connections"
      timeout = "20s"
    }
  }
  command = "redis-benchmark -h 127.0.0.1 -p $PORT -t set -n 20000 -c 20"
  timeout = "2m"
  quiet   = true
  metrics {
    format  = "redis"
    primary = "set_requests_per_second"
  }
}

compare "durability" {
  of = [benchmark.set]
}

report "redis" {
  of      = [compare.durability]
  formats = ["markdown", "json"]
}
