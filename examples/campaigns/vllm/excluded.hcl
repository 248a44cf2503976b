# Commits that are left out, with the reason. They count as skipped in every report.

skip "no_command" {
  for_each = commit
  when     = local.work[each.key].mode == "none"
  reason   = "the data set gives no command that can be run"
}

# Where params have a mistake, the condition has one: plan tells of it, and leaves that commit out.
skip "unknown_parameter" {
  for_each = commit
  when     = anytrue([for name, value in each.value.params : !local.parameters[name] if value != null])
  reason   = "it has a parameter that nothing reads"
}

skip "incomplete" {
  for_each = commit
  when     = local.work[each.key].mode == "serving" ? local.work[each.key].model == "" || local.data[each.key][local.dataset[each.key]] == null : false
  reason   = "it names no model"
}

skip "placeholder" {
  for_each = commit
  when     = can(regex("\\b(MODEL|BS|INPUT_LEN|OUTPUT_LEN)\\b", "${try(local.work[each.key].model, "")} ${local.work[each.key].client}"))
  reason   = "the data set's command has words that stand for values"
}

# Serving was refused for these versions without a try, and five commits were lost by it. A version says nothing for certain:
# the image is asked, before a device is.
known_issue "serving_0_6" {
  for_each = candidates
  when     = local.work[each.commit.name].mode == "serving" && pep440_match(local.version[each.commit.name], ">=0.6.3,<0.6.5")
  probe    = "python3 -c 'import vllm.entrypoints.openai.api_server'"
  reason   = "the server of vLLM 0.6.3 and 0.6.4 may not bind its port (#8791)"
}
