package fuzzing

// Hostile returns texts with a special meaning for terminals or document formats.
func Hostile() []string {
	return []string{
		"", "plain", "a|b", `a\|b`, `\`, `a\`, "`", "``a`", "*x*", "_x_ a_b __c__ d__e", "<script>alert(1)</script>",
		"&lt; &amp; &#60;", "[x](http://y)", "![x](y)",
		"https://evil.example/a_b?c", "www.evil.example", "me@evil.example", "# heading", "- item", "1. item",
		"12) item", "+ x", "= x", "--- | ---", "~~x~~", "$x$",
		"a\nb\r\nc", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07after", "\x1b\x1b[0m[31m", "\x00\x01\x7f", "\xff\xfe",
		"\u202eevil", "\ufeff\u2028\u00a0", "=1+1", "@cmd", "-2+3", "'=1",
		"\t=1", "＝1", `"quoted", "twice"`, "]]>", "a b/c=d%e-8", "Benchmark", "Unit x better=lower", "ключ",
		"BenchmarkX 1 2 ns/op",
	}
}
