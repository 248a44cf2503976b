# Two commits of a small program and an agent's try at each of them: which are faster, and do they still count right?
#
#   benchgraph plan       what there is to do; nothing any more after the demo
#   benchgraph apply      does it
#   benchgraph report     writes the page report/report.html
#   benchgraph explain compare.speed
#
# Change a patch below patches/agent, or the number of lines below, and plan again: only what follows from the change is to be run.

repo "words" { path = "words.bundle" } # git clone words.bundle shows its history

commit "one-pass" {
  title = "one pass instead of sorting all words"
  rev   = "39b27e44675d66a0c09db9a1d5faddbb3a89f749"
}
commit "no-words" {
  title = "a text without words is an error"
  rev   = "a343654187849ba964b8b3ee339027a67c486bed"
}

variant "parent" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
variant "agent" {
  rev      = each.commit.parent
  patch    = "patches/agent/${each.commit.name}.patch"
  optional = true
}

# The text that is counted: the same words whenever it is made.
task "text" {
  command = <<-EOT
    awk 'BEGIN {
      for (line = 0; line < 180000; line++) {
        text = ""
        for (i = 0; i < 12; i++) {
          seed = (seed * 16807 + 11) % 2147483647
          text = text sprintf("%c%c%c ", 97 + seed % 7, 97 + int(seed / 7) % 11, 97 + int(seed / 77) % 13)
        }
        print text
      }
    }' >$OUT/text
  EOT
}

benchmark "count" {
  for_each = candidates
  data = {
    "src/" = each.source
    "text" = task.text
  }
  command = <<-EOT
    bash -c 'TIMEFORMAT="seconds: %R"; time sh src/count.sh text >$OUT/counted' 2>&1
  EOT
  timeout = "1m"
  quiet   = true
  check {
    same = { "counted" = {} } # all candidates count the same words
  }
  metrics {
    primary = "duration"
    metric "duration" {
      match  = "seconds: ([0-9.]+)"
      unit   = "s"
      better = "lower"
    }
  }
}

compare "speed" { of = [benchmark.count] }

report "demo" {
  of      = [compare.speed]
  formats = ["html", "markdown", "json"]
}
