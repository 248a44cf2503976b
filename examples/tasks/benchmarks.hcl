# A small C project, built as one would with make: one node for each object file, so that a changed source file compiles
# one file, and a header recompiles what includes it.

locals {
  sources = { for path in fileset(".", "src/*.c") : trimsuffix(basename(path), ".c") => path }
}

task "object" {
  for_each = local.sources
  inputs   = [each.value, "include/**/*.h"]
  command  = "cc -std=c11 -O2 -Wall -Wextra -Werror -Iinclude -c ${each.value} -o $OUT/${each.key}.o"
  outputs  = ["*.o"]
}

task "wordcount" {
  data    = { for name, object in task.object : "${name}.o" => object }
  command = "cc *.o -o $OUT/wordcount"
  outputs = ["wordcount"]
}

# Every text under tests/ has its expected counts beside it; drafts are not inputs.
task "check" {
  inputs  = ["tests/**/*.txt", "tests/**/*.want", "!tests/draft/**"]
  data    = { "wordcount" = task.wordcount }
  command = <<-EOT
    for text in tests/*.txt; do
      ./wordcount "$text" > got
      diff -u "$${text%.txt}.want" got
    done
    echo "all texts counted" > $OUT/result
  EOT
  outputs = ["result"]
}
