package campaign_test

import (
	"strings"
	"testing"
)

// everything is a project with every attribute of the language, each on a line of its own.
const everything = `
benchgraph {
  required_version = ">= 0.0.1"
  include          = ["more/one.hcl"]
  packs            = ["first-pack"]
  sandbox          = "none" # all
  store {
    url       = "s3://one/prefix"
    endpoint  = "http://127.0.0.1:1"
    region    = "here-1"
    job_role  = "arn:aws:iam::1:role/one"
    read_only = false
    trust     = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIbKQJKq1kot3bgAvtj4iBx9d2gTinJJWOtqJGamXXFM"]
  }
}
cost { gpu_hour = { "A device" = 1 } }
machine "other" { devices = "machines/one.json" }
model "org/m" {
  parameters   = 8000000001
  weights      = 16000000001
  quantization = "fp8-1"
  architecture = "OneForCausalLM"
  max_length   = 8001
  cache        = 131001
  gated        = true // model
  rope         = "rope-1"
  exists       = true // model
}
variable "unused" {
  type        = string
  default     = "xx"
  description = "as any"
  validation {
    condition     = var.unused != ""
    error_message = "it must not be empty."
  }
}
locals { greeting = "hello" }

repo "r" { path = "repo" }
repo "b" { bundle = "three.bundle" }
repo "u" { url = "%[2]s/repo" }
commit "c" {
  repo   = repo.r
  rev    = "main"
  parent = "main~1"
  title  = "a commit"
  params = { used = "yes", unused = "one" }
}
commit "more" {
  for_each = { x = "main~1" }
  repo     = repo.r
  rev      = each.value
}
variant "base" {
  baseline = true
  rev      = each.commit.parent
  params   = { unused = "two" }
}
variant "human" { rev = "main~2" }
variant "agent" {
  baseline = false
  rev      = each.commit.rev
  patch    = "patches/a.diff"
  optional = false
  protect  = ["tests/**"]
  protected = "baseline"
}

wheel "w" {
  for_each = candidates
  source   = each.source
  overlay  = ["*.py"]
  outputs  = ["w*"]
  fixes    = [fix.first]
  build {
    inputs  = ["in/one.txt"]
    image   = null
    command = "echo ${local.greeting} > $OUT/w"
    env     = { W = "one" }
    network = false
    sandbox = "none" # w
    fixes   = [fix.second]
    mounts  = [mount.m["one"], mount.n]
    secrets = ["W_ONE"]
    cpus    = 1
    memory  = "1GiB"
    timeout = "1m"
    disk    = "1MiB"
    estimate = "5s"
  }
}
wheel "pre" {
  for_each = toset(["one"])
  prebuilt = ["%[1]s/one.whl"]
  source   = source.r["x/base"]
}
wheel "near" {
  for_each = candidates
  source = each.source
  overlay = ["**/*.py"]
  prebuilt = ["%[1]s/${each.rev}.whl"]
  nearest  = 2
}
image "built" {
  build {
    context    = "docker"
    dockerfile = "Dockerfile"
    args       = { I = "one" }
    target     = "stage"
  }
}
image "taken" {
  for_each = toset(["one"])
  from     = "example.org/i:1"
  install  = [wheel.w["c/base"]]
  fixes    = [fix.second]
  verify   = "true # i"
  network  = true # in
  push     = "example.org/o:1"
  overlay {
    source = source.r["x/agent"] # laid
    over   = source.r["x/base"] # over
    paths  = ["*.pyi"]
  }
}
fix "first" {
  when        = each.commit.params.used == "yes"
  description = "puts things in place"
  run         = ["true # f"]
  env         = { F = "one" }
  pip         = []
  verify      = "true # fv"
  effect      = "neutral"
  after       = []
  caveat      = "not pretty"
  file {
    from = "files/one"
    to   = "$SITE/to/one"
  }
  file {
    content = "content one"
    to      = "two"
  }
}
fix "second" {
  when = true
  run  = ["true # s"]
}
fix "third" {
  detect = "seldom (seen)"
  patches     = false
  run    = ["true # t"]
}
fix "fifth" { run = ["true # 5"] }
fix "fourth" { run = ["true # 4"] }
failure "rule" {
  match       = "match one"
  stage       = ["run"]
  class       = "permanent"
  remedy      = "remedy one"
  description = "failure one"
  wrapper     = false
  retry {
    attempts = 2
    backoff  = "2s"
  }
}
skip "s" {
  for_each = toset(["x/agent"])
  when     = 1 > 2
  reason   = "skip one"
}
known_issue "k" {
  for_each = toset(["x/agent"])
  when     = true
  probe    = "true # probe"
  reason   = "issue one"
  sandbox  = "none" # k
}
fetch "loose" {
  for_each = toset(["one"])
  url      = "%[1]s/loose"
  max_size = "11GiB"
}
fetch "fixed" {
  url    = "%[1]s/fixed"
  sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
}
benchmark "b" {
  for_each = { for k, c in candidates : k => c if c.commit.name == "c" }
  image    = null
  data     = { "w" = wheel.w[each.key] }
  env      = { B = "one" }
  command  = "./w --bench"
  client   = each.commit.parent
  fixes    = [fix.second, fix.first]
  mounts   = [mount.m["one"]] # b
  caches   = [cache.k]
  fill     = "./w --fill"
  cpus     = 2
  memory   = "2GiB"
  quiet    = false
  network  = false
  sandbox  = "none" # b
  secrets  = ["B_ONE"]
  timeout  = "2m"
  disk     = "2MiB"
  estimate = "6s"
  executor = "local" # where
  gpus {
    count  = 1
    memory = "3GiB"
    model  = "H100"
    sm_clock = "1410MHz"
  }
  server {
    command = "./w --serve"
    env     = { S = "one" }
    ipc     = "private"
    shm_size = "64MiB"
    ulimits  = { nofile = 1024 }
    devices  = ["/dev/infiniband"]
    capabilities = ["IPC_LOCK"]
    ready {
      http    = "/health"
      timeout = "3m"
    }
  }
  canary {
    command   = "true # canary"
    match     = "canary ([0-9]+)"
    file      = "out-k.json"
    unit      = "GB/s"
    tolerance = 0.06
    timeout   = "6m"
  }
  design {
    samples = 4
    max     = 8
    looks   = [4, 6, 8]
    pairing = "blocked"
    warmup  = 1
    seed    = 1
  }
  check {
    command = "true # check"
    source  = source.r["x/base"]
    same    = { "a*" = { tolerance = 0.1 } }
    timeout = "8m"
  }
  metrics {
    format          = "auto"
    primary         = "m"
    file            = "out-b.json"
    token_tolerance = 0.01
    require         = { m = 1 }
    metric "m" {
      match  = "m ([0-9]+)"
      file   = "out-m.json"
      unit   = "ms"
      better = "higher"
      tie    = 0.03
    }
    metric "j" { json = "a.b" }
  }
}
benchmark "n" {
  for_each = { for k, c in candidates : k => c if c.commit.name != "x" }
  command  = "true # n"
  metrics {
    metric "x" { match = "([0-9]+)" }
  }
}
compare "all" {
  for_each   = toset(["one"])
  of         = [benchmark.b["c/base"], benchmark.b["c/agent"]]
  tie        = 0.04
  confidence = 0.95
  metrics    = ["j"]
}
compare "bare" { of = [benchmark.b, benchmark.n] }
report "r" {
  for_each = toset(["one"])
  of       = [compare.all]
  formats  = ["markdown"]
  recorded = [file("one.jsonl")]
  dir      = "report"
}
cache "k" {
  per  = "image"
  path = "~/.k"
}
mount "m" {
  for_each  = toset(["one"])
  source    = "/usr"
  target    = "/mounted"
  read_only = true
  identity  = "r1"
}
mount "n" {
  source   = "/usr"
  target   = "/mounted-too"
  identity = "s1"
}
task "t" {
  for_each    = toset(["one"])
  artefact    = false
  mounts      = [mount.m["one"]]
  inputs      = ["in/*.txt"]
  command     = "true # task"
  env         = { T = "one" }
  data        = { "t" = fetch.fixed }
  image       = null
  source      = source.r["x/base"]
  needs       = []
  outputs     = ["t*"]
  fixes       = [fix.second]
  secrets     = ["T_ONE"]
  cpus        = 3
  memory      = "4GiB"
  timeout     = "4m"
  disk        = "3MiB"
  estimate    = "7s"
  quiet       = true
  network     = false
  sandbox     = "none" # t
  description = "task one"
}
`

// edit is a change of one attribute: pairs of a unique text and its replacement.
type edit []string

func (e edit) in(t *testing.T, text string) string {
	t.Helper()
	for i := 0; i < len(e); i += 2 {
		if n := strings.Count(text, e[i]); n != 1 {
			t.Fatalf("%q is there %d times", e[i], n)
		}
		text = strings.Replace(text, e[i], e[i+1], 1)
	}
	return text
}

// edits change every attribute to another valid value.
var edits = map[string]edit{
	"benchgraph.required_version": {`">= 0.0.1"`, `">= 0.0.2"`},
	"benchgraph.include":          {`"more/one.hcl"`, `"more/*.hcl"`},
	"benchgraph.sandbox":          {`"none" # all`, `"required"`, `"none" # t`, "null"},
	"benchgraph.store.url":        {"s3://one", "s3://two"},
	"benchgraph.store.endpoint":   {"127.0.0.1:1\"", "127.0.0.1:2\""},
	"benchgraph.store.region":     {"here-1", "here-2"},
	"benchgraph.store.job_role":   {"role/one", "role/two"},
	"benchgraph.store.read_only":  {"read_only = false", "read_only = true"},
	"benchgraph.store.trust": {
		"AAAAC3NzaC1lZDI1NTE5AAAAIIbKQJKq1kot3bgAvtj4iBx9d2gTinJJWOtqJGamXXFM",
		"AAAAC3NzaC1lZDI1NTE5AAAAIJkJqvTLmp6mpMW0lcHPyi6GvKbn5/4jjRad/C0iusIJ",
	},
	"known_issue.sandbox":               {`"none" # k`, `"required"`},
	"wheel.build.sandbox":               {`"none" # w`, `"required"`},
	"benchmark.sandbox":                 {`"none" # b`, `"required"`},
	"task.sandbox":                      {`"none" # t`, `"required"`},
	"benchgraph.packs":                  {`"first-pack"`, `"second-pack"`},
	"machine.devices":                   {"machines/one.json", "machines/two.json"},
	"cost.gpu_hour":                     {`"A device" = 1`, `"A device" = 2`},
	"model.parameters":                  {"8000000001", "8000000002"},
	"model.weights":                     {"16000000001", "16000000002"},
	"model.quantization":                {"fp8-1", "fp8-2"},
	"model.architecture":                {"OneForCausalLM", "TwoForCausalLM"},
	"model.max_length":                  {"8001", "8002"},
	"model.cache":                       {"131001", "131002"},
	"model.gated":                       {"gated        = true", "gated        = false"},
	"model.rope":                        {"rope-1", "rope-2"},
	"model.exists":                      {"exists       = true", "exists       = false"},
	"variable.type":                     {"= string", "= any"},
	"variable.default":                  {`"xx"`, `"yy"`},
	"variable.description":              {"as any", "like any"},
	"variable.validation.condition":     {`var.unused != ""`, `var.unused != "-"`},
	"variable.validation.error_message": {"it must not be empty.", "it is empty."},

	"repo.url":        {`/repo" }`, `/repo/.git" }`},
	"repo.path":       {`path = "repo"`, `path = "repo/."`},
	"repo.bundle":     {"three.bundle", "two.bundle"},
	"commit.for_each": {`{ x = "main~1" }`, `{ x = "main~1", y = "main~1" }`},
	"commit.repo":     {`repo   = repo.r`, `repo   = repo.b`},
	"commit.rev":      {`rev    = "main"`, `rev    = "main~2"`},
	"commit.parent":   {`parent = "main~1"`, `parent = "main~2"`},
	"commit.title":    {"a commit", "the commit"},
	"commit.params":   {`unused = "one"`, `unused = "another"`},
	"variant.rev":     {"rev      = each.commit.rev", "rev      = each.commit.parent"},
	"variant.patch":   {"patches/a.diff", "patches/b.diff"},
	"variant.baseline": {"baseline = true", "baseline = false # now", "baseline = false\n  rev",
		"baseline = true\n  rev"},
	"variant.optional":  {"optional = false", "optional = true"},
	"variant.protect":   {`["tests/**"]`, `["tests/*"]`},
	"variant.protected": {`"baseline"`, `"refuse"`},
	"variant.params":    {`unused = "two"`, `unused = "other"`},

	"cache.per":            {"  per  = \"image\"\n", ""},
	"cache.path":           {`"~/.k"`, `"~/.l"`},
	"mount.for_each":       {`toset(["one"])` + "\n  source", `toset(["one", "two"])` + "\n  source"},
	"mount.source":         {`source    = "/usr"`, `source    = "/etc"`},
	"mount.target":         {`"/mounted"`, `"/elsewhere"`},
	"mount.read_only":      {"read_only = true", "read_only = false"},
	"mount.identity":       {`"r1"`, `"r2"`},
	"fetch.for_each":       {`toset(["one"])` + "\n  url", `toset(["one", "two"])` + "\n  url"},
	"fetch.url":            {"/loose", "/other"},
	"fetch.sha256":         {"e3b0c4", "e3b0c5"},
	"fetch.max_size":       {`max_size = "11GiB"`, `max_size = "12GiB"`},
	"wheel.for_each":       {`toset(["one"])` + "\n  prebuilt", `toset(["one", "two"])` + "\n  prebuilt"},
	"wheel.source":         {"source   = each.source", `source   = source.r["x/base"]`},
	"wheel.prebuilt":       {"/one.whl", "/two.whl"},
	"wheel.overlay":        {`"*.py"`, `"*.txt"`},
	"wheel.nearest":        {"nearest  = 2", "nearest  = 3"},
	"wheel.outputs":        {`"w*"`, `"w"`},
	"wheel.fixes":          {"fixes    = [fix.first]\n  build", "fixes    = []\n  build"},
	"wheel.build.inputs":   {`inputs  = ["in/one.txt"]`, `inputs  = ["in/two.txt"]`},
	"wheel.build.image":    {"image   = null", "image   = image.built"},
	"wheel.build.command":  {"echo ${local.greeting}", "echo the ${local.greeting}"},
	"wheel.build.env":      {`W = "one"`, `W = "two"`},
	"wheel.build.mounts":   {`[mount.m["one"], mount.n]`, "[mount.n]"},
	"wheel.build.fixes":    {"fixes   = [fix.second]", "fixes   = []"},
	"wheel.build.network":  {"network = false", "network = true"},
	"wheel.build.secrets":  {"W_ONE", "W_TWO"},
	"wheel.build.cpus":     {"cpus    = 1", "cpus    = 2"},
	"wheel.build.memory":   {`"1GiB"`, `"2GiB"`},
	"wheel.build.timeout":  {`"1m"`, `"2m"`},
	"wheel.build.disk":     {`"1MiB"`, `"2MiB"`},
	"wheel.build.estimate": {`"5s"`, `"50s"`},

	"image.for_each":         {`toset(["one"])` + "\n  from", `toset(["one", "two"])` + "\n  from"},
	"image.from":             {"example.org/i:1", "example.org/i:2"},
	"image.install":          {`[wheel.w["c/base"]]`, `[wheel.w["c/agent"]]`},
	"image.fixes":            {"fixes    = [fix.second]\n  verify", "fixes    = []\n  verify"},
	"image.verify":           {"true # i\"", "true # I\""},
	"image.network":          {"= true # in", "= false # in"},
	"image.push":             {"example.org/o:1", "example.org/o:2"},
	"image.overlay.source":   {`source.r["x/agent"] # laid`, `source.r["x/base"]`},
	"image.overlay.over":     {`source.r["x/base"] # over`, `source.r["x/agent"]`},
	"image.overlay.paths":    {`"*.pyi"`, `"*.pyx"`},
	"image.build.context":    {`"docker"`, `"."`},
	"image.build.dockerfile": {`dockerfile = "Dockerfile"`, `dockerfile = "Dockerfile.two"`},
	"image.build.target":     {`"stage"`, `"other"`},
	"image.build.args":       {`I = "one"`, `I = "two"`},

	"fix.when":    {`used == "yes"`, `used == "no"`},
	"fix.detect":  {"seldom (seen)", "often (seen)"},
	"fix.patches": {"patches     = false", "patches     = true"},
	"fix.run":     {"true # f\"", "true # g\""},
	"fix.env":     {`F = "one"`, `F = "two"`},
	"fix.pip":     {"pip         = []", `pip         = ["x==1"]`},
	"fix.verify":  {"true # fv", "true # fw"},
	"fix.effect":  {`effect      = "neutral"`, `effect      = "perf"`},
	"fix.after": {"after       = []", "after       = [fix.second]", "fixes    = [fix.second, fix.first]",
		"fixes    = [fix.first, fix.second]"},
	"fix.description":  {"puts things in place", "puts other things in place"},
	"fix.caveat":       {"not pretty", "not nice"},
	"fix.file.from":    {"files/one", "files/two"},
	"fix.file.content": {"content one", "content two"},
	"fix.file.to":      {`to      = "two"`, `to      = "three"`},

	"failure.match":          {"match one", "match two"},
	"failure.stage":          {`["run"]`, `["start"]`},
	"failure.class":          {`"permanent"`, `"transient"`},
	"failure.remedy":         {"remedy one", "remedy two"},
	"failure.description":    {"failure one", "failure two"},
	"failure.wrapper":        {"wrapper     = false", "wrapper     = true"},
	"failure.retry.attempts": {"attempts = 2", "attempts = 3"},
	"failure.retry.backoff":  {`"2s"`, `"3s"`},
	"skip.for_each":          {`["x/agent"])` + "\n  when     = 1", `["x/agent", "x/base"])` + "\n  when     = 1"},
	"skip.when":              {"1 > 2", "1 < 2"},
	"skip.reason":            {"skip one", "skip two"},
	"known_issue.for_each": {`["x/agent"])` + "\n  when     = true", `["x/agent", "x/base"])` +
		"\n  when     = true"},
	"known_issue.when":   {"when     = true", "when     = false"},
	"known_issue.probe":  {"true # probe", "true # other probe"},
	"known_issue.reason": {"issue one", "issue two"},

	"benchmark.for_each":             {`if c.commit.name == "c" }`, "}"},
	"benchmark.image":                {"image    = null", "image    = image.built", "[fix.second, fix.first]", "[]"},
	"benchmark.data":                 {`{ "w" = wheel`, `{ "v" = wheel`},
	"benchmark.env":                  {`B = "one"`, `B = "two"`},
	"benchmark.command":              {"--bench", "--bench --more"},
	"benchmark.client":               {"client   = each.commit.parent", "client   = each.commit.rev"},
	"benchmark.mounts":               {`[mount.m["one"]] # b`, "[mount.n]"},
	"benchmark.caches":               {"[cache.k]", "[]"},
	"benchmark.fill":                 {"--fill", "--fill --more"},
	"benchmark.fixes":                {"[fix.second, fix.first]", "[fix.second]"},
	"benchmark.cpus":                 {"cpus     = 2", "cpus     = 1"},
	"benchmark.memory":               {`memory   = "2GiB"`, `memory   = "3GiB"`},
	"benchmark.quiet":                {"quiet    = false", "quiet    = true"},
	"benchmark.network":              {"network  = false", "network  = true"},
	"benchmark.secrets":              {"B_ONE", "B_TWO"},
	"benchmark.timeout":              {`timeout  = "2m"`, `timeout  = "3m"`},
	"benchmark.disk":                 {`"2MiB"`, `"3MiB"`},
	"benchmark.estimate":             {`"6s"`, `"60s"`},
	"benchmark.executor":             {`"local" # where`, "null"},
	"benchmark.gpus.count":           {"count  = 1", "count  = 2"},
	"benchmark.gpus.memory":          {`memory = "3GiB"`, `memory = "4GiB"`},
	"benchmark.gpus.sm_clock":        {`"1410MHz"`, `"1.4GHz"`},
	"benchmark.gpus.model":           {"H100", "H200"},
	"benchmark.server.command":       {"--serve", "--serve --more"},
	"benchmark.server.env":           {`S = "one"`, `S = "two"`},
	"benchmark.server.ipc":           {"    ipc     = \"private\"\n", ""},
	"benchmark.server.shm_size":      {`"64MiB"`, `"65MiB"`},
	"benchmark.server.ulimits":       {"nofile = 1024", "nofile = 1025"},
	"benchmark.server.devices":       {`"/dev/infiniband"`, `"/dev/gdrdrv"`},
	"benchmark.server.capabilities":  {`"IPC_LOCK"`, `"SYS_NICE"`},
	"benchmark.server.ready.http":    {`"/health"`, `"/ready"`},
	"benchmark.server.ready.log":     {`http    = "/health"`, `log     = "ready"`},
	"benchmark.server.ready.tcp":     {`http    = "/health"`, `tcp     = true`},
	"benchmark.server.ready.timeout": {`timeout = "3m"`, `timeout = "4m"`},
	"benchmark.canary.command":       {"true # canary", "true # another canary"},
	"benchmark.canary.match":         {"canary ([0-9]+)", "canary: ([0-9]+)"},
	"benchmark.canary.json":          {`match     = "canary ([0-9]+)"`, `json      = "a.b"`},
	"benchmark.canary.file":          {"out-k.json", "out-l.json"},
	"benchmark.canary.unit":          {`"GB/s"`, `"MB/s"`},
	"benchmark.canary.tolerance":     {"tolerance = 0.06", "tolerance = 0.07"},
	"benchmark.canary.timeout":       {`"6m"`, `"7m"`},
	"benchmark.design.samples": {"samples = 4\n    max     = 8\n    looks   = [4, 6, 8]",
		"samples = 5\n    max     = 8"},
	"benchmark.design.max":              {"max     = 8\n    looks   = [4, 6, 8]", "max     = 9"},
	"benchmark.design.looks":            {"[4, 6, 8]", "[4, 8]"},
	"benchmark.design.burn_in":          {"looks   = [4, 6, 8]", "looks   = [4, 6, 8]\n    burn_in = 1"},
	"benchmark.design.pairing":          {`"blocked"`, `"independent"`},
	"benchmark.design.warmup":           {"warmup  = 1", "warmup  = 2"},
	"benchmark.design.repeat":           {"warmup  = 1", "warmup  = 1\n    repeat  = 3"},
	"benchmark.design.spread":           {"warmup  = 1", "warmup  = 1\n    spread  = true"},
	"benchmark.design.seed":             {"seed    = 1", "seed    = 2"},
	"benchmark.check.command":           {"true # check", "true # other check"},
	"benchmark.check.source":            {`source  = source.r["x/base"]`, `source  = source.r["x/agent"]`},
	"benchmark.check.same":              {"tolerance = 0.1 }", "tolerance = 0.2 }"},
	"benchmark.check.timeout":           {`"8m"`, `"9m"`},
	"benchmark.metrics.format":          {`"auto"`, `"regex"`},
	"benchmark.metrics.primary":         {`primary         = "m"`, `primary         = "j"`},
	"benchmark.metrics.file":            {"out-b.json", "out-c.json"},
	"benchmark.metrics.token_tolerance": {"token_tolerance = 0.01", "token_tolerance = 0.02"},
	"benchmark.metrics.require":         {"require         = { m = 1 }", "require         = { m = 2 }"},
	"benchmark.metrics.metric.match":    {"m ([0-9]+)", "m: ([0-9]+)"},
	"benchmark.metrics.metric.json":     {`"a.b"`, `"a.c"`},
	"benchmark.metrics.metric.file":     {"out-m.json", "out-n.json"},
	"benchmark.metrics.metric.unit":     {`"ms"`, `"s"`},
	"benchmark.metrics.metric.better":   {`"higher"`, `"lower"`},
	"benchmark.metrics.metric.tie":      {"tie    = 0.03", "tie    = 0.04"},

	"compare.for_each":   {`toset(["one"])` + "\n  of         =", `toset(["one", "two"])` + "\n  of         ="},
	"compare.of":         {`[benchmark.b["c/base"], benchmark.b["c/agent"]]`, `[benchmark.b["c/agent"], benchmark.n]`},
	"compare.tie":        {"tie        = 0.04", "tie        = 0.05"},
	"compare.confidence": {"0.95", "0.9"},
	"compare.metrics":    {`["j"]`, `["j", "m"]`},
	"report.for_each":    {`toset(["one"])` + "\n  of       =", `toset(["one", "two"])` + "\n  of       ="},
	"report.of":          {"[compare.all]", "[compare.bare]"},
	"report.formats":     {`["markdown"]`, `["json"]`},
	"report.recorded":    {"one.jsonl", "two.jsonl"},
	"report.dir":         {`"report"`, `"elsewhere"`},

	"task.for_each":    {`toset(["one"])` + "\n  artefact", `toset(["one", "two"])` + "\n  artefact"},
	"task.inputs":      {"in/*.txt", "in/one.txt"},
	"task.command":     {"true # task", "true # other task"},
	"task.env":         {`T = "one"`, `T = "two"`},
	"task.data":        {`"t" = fetch`, `"u" = fetch`},
	"task.image":       {"image       = null", "image       = image.built"},
	"task.source":      {`source      = source.r["x/base"]`, `source      = source.r["x/agent"]`},
	"task.needs":       {"needs       = []", `needs       = [wheel.w["c/base"]]`},
	"task.outputs":     {`"t*"`, `"t"`},
	"task.fixes":       {"fixes       = [fix.second]", "fixes       = []"},
	"task.secrets":     {"T_ONE", "T_TWO"},
	"task.cpus":        {"cpus        = 3", "cpus        = 1"},
	"task.memory":      {`"4GiB"`, `"5GiB"`},
	"task.timeout":     {`"4m"`, `"5m"`},
	"task.disk":        {`"3MiB"`, `"4MiB"`},
	"task.estimate":    {`"7s"`, `"70s"`},
	"task.quiet":       {"quiet       = true", "quiet       = false"},
	"task.network":     {"network     = false", "network     = true"},
	"task.mounts":      {`mounts      = [mount.m["one"]]`, "mounts      = [mount.n]"},
	"task.artefact":    {"artefact    = false", "artefact    = true"},
	"task.description": {"task one", "task two"},
}
