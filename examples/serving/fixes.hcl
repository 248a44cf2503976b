# What the stand-in engine needs to run, here and in the rehearsal of the campaign.
# Learnt when a server does not start, or a benchmark ends, with a line that `detect` matches: for all variants of the commit.
fix "quokka" {
  description = "tinyhub 2 knows quokka by itself"
  detect      = "'quokka' is already used by a tinyhub config"
  run         = ["sed -i 's/(\"quokka\", QuokkaConfig)/(\"quokka\", QuokkaConfig, exist_ok=True)/' $SITE/tinyserve/configs/quokka.py"]
  verify      = "python3 -c 'import tinyserve.configs'"
  effect      = "neutral"
  caveat      = "the registration of a configuration was edited"
}

fix "scheduler" {
  description = "a directory without __init__.py is not packed into the wheel"
  detect      = "No module named 'tinyserve.core'"
  file {
    from = "${each.source}/tinyserve/core/scheduler.py"
    to   = "$SITE/tinyserve/core/scheduler.py"
  }
  verify = "python3 -c 'import tinyserve.core.scheduler'"
  effect = "neutral"
}

fix "tinynum1" {
  description = "float_ is gone from tinynum 2"
  detect      = "was removed in tinynum 2\\.0"
  pip         = ["tinynum<2"]
  verify      = "python3 -c 'import tinynum; tinynum.float_'"
  effect      = "unknown"
  caveat      = "measured with tinynum 1"
}
