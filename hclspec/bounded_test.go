package hclspec_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Bounds on the reading of a hostile or mistaken project.
const (
	maxMemory  = 768 << 20 // a text that grows past the bound of 160 MiB has three copies, and some garbage
	maxSeconds = 60        // of processor time, twice what an evaluation has
)

// TestMain reads one project instead of running the tests, if a test has started this program as its child.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HCLSPEC_READ"); dir != "" {
		readAlone(dir)
	}
	code := m.Run()
	if childDir != "" {
		os.RemoveAll(childDir)
	}
	os.Exit(code)
}

// childDir is the directory in which childProgram builds.
var childDir string

// childProgram returns this test as a program. It is built without the race detector, which would multiply the measured
// time and memory.
var childProgram = sync.OnceValues(func() (string, error) {
	if !needtest.UnderRace {
		return os.Executable()
	}
	var err error
	if childDir, err = os.MkdirTemp("", "hclspec"); err != nil {
		return "", err
	}
	program := filepath.Join(childDir, "child")
	if out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// readAlone reads the project and its lock, prints the diagnostics, and ends.
func readAlone(dir string) {
	limit := syscall.Rlimit{Cur: maxSeconds, Max: maxSeconds}
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	o := hclspec.Options{Dir: dir, Version: "0.1.0"}
	load, parseLock := hclspec.Load, lockfile.Parse
	if bound, err := time.ParseDuration(os.Getenv("HCLSPEC_WITHIN")); err == nil {
		load = func(o hclspec.Options) (*hclspec.Spec, map[string]*hcl.File, hcl.Diagnostics) {
			return hclspec.LoadWithin(bound, o)
		}
		parseLock = func(src []byte, filename string) (*lockfile.Lock, hcl.Diagnostics) {
			return hclspec.ParseWithin(bound, src, filename)
		}
	}
	if src, err := os.ReadFile(filepath.Join(dir, "benchgraph.lock.hcl")); err == nil {
		lock, diags := parseLock(src, "benchgraph.lock.hcl")
		for _, d := range diags {
			fmt.Println(d)
		}
		o.Lock = lock
	}
	if vars := filepath.Join(dir, "vars.hcl"); exists(vars) {
		o.VarFiles = []string{vars}
	}
	spec, files, diags := load(o)
	for _, d := range diags {
		fmt.Printf("%s: %s; %s\n", d.Subject, d.Summary, d.Detail)
		if d.Subject != nil && len(files[d.Subject.Filename].Bytes) < d.Subject.Start.Byte {
			fmt.Println("a place outside the file")
		}
	}
	if (spec == nil) != diags.HasErrors() {
		fmt.Println("a spec and errors, or neither")
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		kib, _, _ := strings.Cut(strings.TrimSpace(peak), " ")
		fmt.Println(peakMark + kib)
	}
	os.Exit(0)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// stopped is the summary of the diagnostic for an evaluation that the watchdog ended.
const stopped = "Too much to evaluate"

// peakMark begins the line with the largest memory of the child, in KiB.
const peakMark = "peak memory: "

// readInChild reads the project in a process of its own, which is killed above its bounds, and returns the diagnostics.
// If the watchdog must end the evaluation, its bounds are low.
func readInChild(t *testing.T, dir, want string) string {
	t.Helper()
	program, err := childProgram()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "HCLSPEC_READ="+dir, "GOGC=50") // little garbage
	switch {
	case want == stopped:
		cmd.Env = append(cmd.Env, "HCLSPEC_WITHIN=500ms")
	case strings.HasPrefix(want, "benchmarks.hcl:"): // a slow machine must come to the place of the mistake
		cmd.Env = append(cmd.Env, "HCLSPEC_WITHIN=1s")
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err = watch(cmd, done)
	told, kib, _ := strings.Cut(out.String(), peakMark)
	peak, _ := strconv.ParseInt(strings.TrimSpace(kib), 10, 64)
	if peak <<= 10; err == nil && peak > maxMemory {
		err = fmt.Errorf("it took %d MiB", peak>>20)
	}
	if err != nil {
		t.Fatalf("%s; it told:\n%.2000s", err, told)
	}
	t.Logf("%d MiB, %s", peak>>20, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return told
}

// watch waits for a process, and kills it when it has too much memory.
func watch(cmd *exec.Cmd, done <-chan error) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
			if resident(cmd.Process.Pid) > maxMemory {
				// It may have ended since.
				_ = cmd.Process.Kill()
				return fmt.Errorf("it took more than %d MiB: %w", maxMemory>>20, <-done)
			}
		}
	}
}

// resident returns the memory of a process; 0: not known.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

// locals returns a project of one locals block.
func locals(body string) string {
	return "-- benchmarks.hcl --\nlocals {\n" + body + "\n}\n"
}

// doubling returns a chain of local values, each of which holds the one before it twice.
func doubling(first, format string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "  a0 = %s\n", first)
	for i := range 60 {
		fmt.Fprintf(&out, "  a%d = %s\n", i+1, strings.ReplaceAll(format, "X", fmt.Sprintf("local.a%d", i)))
	}
	return locals(out.String())
}

// encoded returns a project in which an expression reads the whole of the last value of doubling.
func encoded(project string) string {
	return strings.TrimSuffix(project, "\n}\n") + "\n  b = jsonencode(local.a60)\n}\n"
}

func nested(n int, open, middle, end string) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
}

// TestEveryMistakeEndsSoon reads projects that ask for too much. Each ends, within bounds of time and memory, with a
// diagnostic that names the place and the cause.
func TestEveryMistakeEndsSoon(t *testing.T) {
	needtest.NoRace(t)
	task := func(forEach string) string {
		return "-- benchmarks.hcl --\ntask \"t\" {\n  for_each = " + forEach +
			"\n  command  = \"echo ${each.key}\"\n}\n"
	}
	for name, test := range map[string]struct{ project, want string }{
		"for_each over ten million": {task(`{ for i in range(10000000) : "k${i}" => i }`), "benchmarks.hcl:2"},
		"for_each over a nested for": {task(`flatten([for i in range(4000) : [for j in range(4000) : ` +
			`"${i}-${j}"]])`), stopped},
		"for_each over setproduct": {task(`toset([for p in setproduct(range(4000), range(4000)) : join("-", p)])`),
			"benchmarks.hcl:"},
		"for_each over 300000": {task(`{ for i in range(300000) : "k${i}" => null }`),
			"which is the limit of a project"},
		"for_each over equal keys": {task(`[for i in range(100000) : "x"]`), "there twice"},
		"three loops": {locals(`a = [for i in range(1000) : [for j in range(1000) : [for k in ` +
			`range(1000) : null]]]`), "benchmarks.hcl:2"},
		"loops that keep nothing": {locals(`a = [for i in range(100000) : i if length([for j in ` +
			`range(100000) : j if false]) > 0]`), "benchmarks.hcl:2"},
		"loops of mistakes": {locals(`a = [for i in range(1000000) : i.x.y]`), stopped},
		"loops that catch mistakes": {locals(`a = [for i in range(1000) : try([for j in range(1000000) : ` +
			`j.x], 1)]`), stopped},
		"can catches nothing": {locals(`a = [for i in range(1000000) : can([for j in range(1000000) : j])]`),
			stopped},
		"a splat of a splat": {locals(`a = [for i in range(100000) : range(100)[*]]`), stopped},
		"a template with loops": {locals(`a = "%{ for i in range(100000) }%{ for j in range(100000) ` +
			`}abcdefgh%{ endfor }%{ endfor }"`), stopped},
		"expanded arguments": {locals(`a = [for i in range(10000) : concat([for j in range(10000) : ` +
			`[j]]...)]`), stopped},
		"doubled text":           {doubling(`"0123456789"`, `"${X}${X}"`), "benchmarks.hcl:"},
		"doubled text by join":   {doubling(`"0123456789"`, `join("", [X, X])`), "benchmarks.hcl:"},
		"doubled text by format": {doubling(`"0123456789"`, `format("%s%s", X, X)`), "benchmarks.hcl:"},
		"doubled text by formatlist": {doubling(`"0123456789"`, `formatlist("%s%s", [X], [X])[0]`),
			"benchmarks.hcl:"},
		"doubled text by replace":    {doubling(`"01234"`, `replace(X, "/./", "$0$0")`), "benchmarks.hcl:"},
		"text multiplied by replace": {doubling(`"0123456789"`, `replace(X, "", X)`), "benchmarks.hcl:"},
		"text multiplied by join":    {locals(`a = join(join("", range(100000)), range(100000))`), "64 MiB"},
		"text multiplied by indent":  {locals(`a = indent(9999, join("\n", range(100000)))`), "64 MiB"},
		"text multiplied by formatlist": {locals(`a = formatlist("%s %[1]s %[1]s", join("", range(100000)), ` +
			`range(100000))`), "64 MiB"},
		"text multiplied by regexreplace": {locals(`a = regexreplace(join("", range(10000)), ".", join("", ` +
			`range(10000)))`), "benchmarks.hcl:"},
		"doubled lists":            {encoded(doubling(`["x"]`, `[X, X]`)), stopped},
		"doubled lists by concat":  {doubling(`["x"]`, `concat(X, X)`), stopped},
		"doubled objects":          {encoded(doubling(`{ x = 1 }`, `{ a = X, b = X }`)), stopped},
		"doubled objects, encoded": {doubling(`"x"`, `jsonencode([X, X])`), stopped},
		"doubled in a condition":   {encoded(doubling(`["x"]`, `true ? [X, X] : []`)), stopped},
		"squared numbers": {doubling(`10`, `X * X`) +
			"task \"t\" {\n  command = \"x\"\n  cpus    = local.a60\n}\n", "digits"},
		"a long number": {locals(`a = "x${1e600000000}"`), stopped},
		"a long number from a text": {locals("a = \"x${tonumber(\"1e600000000\")}\"\nb = \"${\"1e600000000\" " +
			"* 1}\"\nc = format(\"%d\", \"1e600000000\")"), stopped},
		"a long number from JSON": {locals(`a = "x${jsondecode("1e600000000")}"`), stopped},
		"a long number in a JSON file": {"-- benchmarks.hcl.json --\n{\"locals\": {\"a\": 1e600000000, \"b\": " +
			"\"x${local.a}\"}}\n", stopped},
		"different types in a list": {locals(`a = tolist([for i in range(20000) : { "k${i}" = i }])`), stopped},
		"different types in a condition": {locals(`a = true ? [for i in range(20000) : { "k${i}" = i }] : []`),
			stopped},
		"equality in a loop": {locals("a = [for i in range(1000000) : i]\nb = [for i in range(1000) : " +
			"local.a == local.a]"), stopped},
		"distinct numbers": {locals(`a = distinct([for i in range(900000) : i + 0.5])`), stopped},
		"distinct lists":   {locals(`a = distinct([for i in range(5000) : [i + 0.5]])`), stopped},
		"fractions that are compared": {locals(`a = [for i in range(100000) : 1e-1200 / 3 == 1e-1200 / 7]`),
			stopped},
		"fractions that are written": {locals(`a = [for i in range(100000) : "x${1e-1200 / 3}"]`), stopped},
		"fractions that are keys":    {locals(`a = { for i in range(100000) : 1e-1200 / (3 + i) => i }`), stopped},
		"fractions that are searched": {locals("a = [for i in range(100000) : i + 0.5]\nb = [for i in " +
			"range(100) : contains(local.a, 0.25)]"), stopped},
		"fractions in a set": {locals(`a = toset([for i in range(100000) : 1e-1200 / (3 + i)])`), stopped},
		"fractions that become texts": {locals(`a = join("", [for i in range(100000) : 1e-1200 / (3 + i)])`),
			stopped},
		"fractions that are encoded": {locals(`a = jsonencode([for i in range(100000) : 1e-1200 / (3 + i)])`),
			stopped},
		"sets of sets": {locals("a = toset([for i in range(100000) : \"k${i}\"])\nb = [for i in " +
			"range(100) : setunion(local.a, [\"x\"])]"), stopped},
		"long lists in a short one": {"-- benchmarks.hcl --\nvariable \"v\" {\n  type    = list(object({ a = " +
			"list(any) }))\n  default = [{ a = [for i in range(40000) : \"k${i}\"] }]\n}\nlocals { b = [for i in " +
			"range(100) : transpose({ a = var.v[0].a })] }\n", stopped},
		"numbers with one hash": {locals(`a = toset([for i in range(100000) : 100000000000000000000 + i])`),
			stopped},
		"a format's width":            {locals(`a = format("%1000000000d", 1)`), "width or precision"},
		"a format's other width":      {locals(`a = format("%*d", 1000000000, 1)`), "benchmarks.hcl:2"},
		"a repetition of repetitions": {locals(`a = regex("(a{1000}){1000}", "aaa")`), "benchmarks.hcl:2"},
		"a large repetition": {locals("a = join(\"a\", [for i in range(100000) : \"\"])\nb = " +
			"regex(\"(a?){1000}(a?){900}b\", local.a)"), stopped},
		"matches that look far ahead": {locals("a = join(\"a\", [for i in range(100000) : \"\"])\nb = " +
			"regexall(\"a.*b|a\", local.a)"), stopped},
		"JSON in JSON": {locals(`a = jsondecode(join("", [for i in range(100000) : "["]))`),
			"nested deeper"},
		"much JSON": {locals(`a = jsondecode("[${join(",", [for i in range(1000000) : "[]"])}]")`),
			stopped},
		"much CSV": {locals(`a = csvdecode("a,b,c,d,e,f,g,h,i,j,k,l\n${join("\n", [for i in ` +
			`range(300000) : ",,,,,,,,,,,"])}")`), stopped},
		"much YAML": {locals(`a = yamldecode(join("\n", [for i in range(1000000) : "- []"]))`),
			stopped},
		"YAML aliases": {locals(`a = yamldecode("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b ` +
			`[*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d ` +
			`[*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]")`), "aliases"},
		"values nested by locals": {locals(func() string {
			var b strings.Builder
			b.WriteString("a0 = []\n")
			for i := range 100_000 {
				fmt.Fprintf(&b, "a%d = [local.a%d]\n", i+1, i)
			}
			return b.String()
		}()), "need each other"},
		"names that need each other": {locals(func() string {
			var b strings.Builder
			b.WriteString("z = local.a0\n")
			for i := range 100_000 {
				fmt.Fprintf(&b, "a%d = local.a%d\n", i, i+1)
			}
			b.WriteString("a100000 = 1\n")
			return b.String()
		}()), "need each other"},
		"all instances need all": {"-- benchmarks.hcl --\ntask \"a\" {\n  for_each = toset([for i in " +
			"range(5000) : \"a${i}\"])\n  command  = \"true\"\n}\ntask \"b\" {\n  for_each = task.a\n  needs    = " +
			"[task.a]\n  command  = \"true\"\n}\n", "task.a[each.key]"},
		"commits times variants": {"-- benchmarks.hcl --\ncommit \"c\" { for_each = toset([for i in " +
			"range(100000) : \"c${i}\"]) }\nvariant \"x\" {}\nvariant \"y\" {}\nvariant \"z\" {}\n", "candidates"},
		"the default of a variable": {"-- benchmarks.hcl --\nvariable \"v\" {\n  type    = object({ a = " +
			"optional(number, [for i in [1,2,3,4,5,6,7,8,9,0] : 1][0]) })\n  default = [for i in range(3000) : [for " +
			"j in range(3000) : 1]]\n}\n", "benchmarks.hcl:3"},
		"parentheses": {locals("a = " + nested(10_000, "(", "1", ")")), "Nested too deeply"},
		"brackets":    {locals("a = " + nested(10_000, "[", "1", "]")), "Nested too deeply"},
		"objects":     {locals("a = " + nested(10_000, "{a=", "1", "}")), "Nested too deeply"},
		"templates":   {locals("a = " + nested(10_000, `"${`, "1", `}"`)), "Nested too deeply"},
		"directives": {locals(`a = "` + nested(10_000, `%{ if true }`, "1", `%{ endif }`) + `"`),
			"Nested too deeply"},
		"blocks": {"-- benchmarks.hcl --\n" + nested(10_000, "task \"t\" {\n", "", "}\n"),
			"Nested too deeply"},
		"conditions": {locals("a = " + strings.Repeat("true ? 1 : ", 10_000) + "2"),
			"Expression too long"},
		"signs": {locals("a = " + strings.Repeat("-", 10_000) + "2"), "Expression too long"},
		"signs in brackets": {locals("a = " + nested(100, "[1, "+strings.Repeat("-", 1000), "1", "]")),
			"Expression too long"},
		"indexes":  {locals("a = [1]" + strings.Repeat("[0]", 10_000)), "Expression too long"},
		"calls":    {locals("a = " + nested(10_000, "abs(", "1", ")")), "Nested too deeply"},
		"heredocs": {locals("a = " + strings.Repeat("<<X\n${", 10_000)), "Nested too deeply"},
		"brackets in JSON": {"-- benchmarks.hcl.json --\n{\"locals\": {\"a\": " +
			nested(100_000, "[", "1", "]") + "}}\n", "Nested too deeply"},
		"brackets after a mistake": {"-- benchmarks.hcl.json --\n{\"locals\": {\"b\": tru, \"a\": " +
			nested(100_000, "[", "1", "]") + "}}\n", "Nested too deeply"},
		"parentheses in JSON": {"-- benchmarks.hcl.json --\n{\"locals\": {\"a\": \"${" +
			nested(10_000, "(", "1", ")") + "}\"}}\n", "Nested too deeply"},
		"a type in JSON": {"-- benchmarks.hcl.json --\n{\"variable\": {\"a\": {\"type\": \"" +
			nested(100_000, "list(", "any", ")") + "\"}}}\n", "Nested too deeply"},
		"loops in JSON": {"-- benchmarks.hcl.json --\n{\"locals\": {\"a\": \"${[for i in " +
			"range(10000) : [for j in range(10000) : i]]}\"}}\n", stopped},
		"a byte order mark":      {"-- benchmarks.hcl --\n\xef\xbb\xbflocals {}\n", "byte order mark"},
		"a NUL":                  {"-- benchmarks.hcl --\nlocals { a = \"\x00\" }\n", "U+0000"},
		"bytes that are no text": {"-- benchmarks.hcl --\nlocals { a = \"\xff\" }\n", "UTF-8"},
		"a merge conflict": {"-- benchmarks.hcl --\n<<<<<<< ours\nlocals {}\n=======\n>>>>>>> theirs\n",
			"Merge conflict"},
		"a merge conflict in the lock": {"-- benchmarks.hcl --\n-- benchgraph.lock.hcl --\n# Written by benchgraph " +
			"apply. Commit it.\n<<<<<<< ours\n=======\n>>>>>>> theirs\n", "Take either side"},
		"parentheses in the lock": {"-- benchmarks.hcl --\n-- benchgraph.lock.hcl --\nimage \"x\" { digest = " +
			nested(10_000, "(", "1", ")") + " }\n", "Nested too deeply"},
		"loops in the lock": {"-- benchmarks.hcl --\n-- benchgraph.lock.hcl --\nimage \"x\" { digest = " +
			nested(9, "[for i in [1,2,3,4,5,6,7,8,9,0] : ", "1", "]") + " }\n", stopped},
		"many signs": {"-- benchmarks.hcl --\n" + strings.Repeat("{}[]=,;\n", 1_000_000),
			"Too much to read"},
		"one long comment": {"-- benchmarks.hcl --\n#" + strings.Repeat("x", 33<<20) + "\n",
			"Too much to read"},
		"one long line": {locals("a = \"" + strings.Repeat("x", 8<<20) + "\"\nb = nothing.x"),
			"Unknown name"},
		"one long name": {locals(strings.Repeat("x", 1<<20) + " = 1\nb = local." +
			strings.Repeat("x", 1<<20) + "y"), "Unknown local value"},
		"many unknown names": {"-- benchmarks.hcl --\n" + func() string {
			var b strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&b, "task \"task%d\" {\n  command = \"x\"\n  needs   = [task.taks%d]\n}\n", i, i)
			}
			return b.String()
		}(), "not shown"},
		"alternatives of alternatives": {"-- benchmarks.hcl --\ntask \"t\" {\n  inputs  = [\"" +
			strings.Repeat("{a,b}", 40) + "\"]\n  command = \"true\"\n}\n", "alternatives"},
		"stars and alternatives": {"-- benchmarks.hcl --\ntask \"t\" {\n  inputs  = [\"" +
			strings.Repeat("*{a,b}", 8) + "x\"]\n  command = \"true\"\n}\n-- " + strings.Repeat("a", 200) + " --\n",
			"matches no file"},
		"a file includes itself": {"-- benchmarks.hcl --\nbenchgraph { include = [\"*.hcl\", " +
			"\"benchmarks.hcl\"] }\nlocals { a = nothing.x }\n", "Unknown name"},
		"includes outside": {"-- benchmarks.hcl --\nbenchgraph { include = [\"/**/*.hcl\"] }\n",
			"outside the project"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range txtar.Parse([]byte(test.project)).Files {
				write(t, filepath.Join(dir, f.Name), string(f.Data))
			}
			told := readInChild(t, dir, test.want)
			if !strings.Contains(told, test.want) {
				t.Errorf("%q is not in what is told:\n%.2000s", test.want, told)
			}
			if lines := strings.Count(told, "\n"); lines > 110 {
				t.Errorf("%d diagnostics", lines)
			}
		})
	}
}

// TestFilesThatMustNotBeRead puts something else in the place of a file.
func TestFilesThatMustNotBeRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.hcl")
	write(t, outside, "locals { secret = 1 }\n")
	link := func(target, name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sparse := func(name string, size int64) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, name), "")
			if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
				t.Fatal(err)
			}
		}
	}
	fifo := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	nothing := func(*testing.T, string) {}
	inputs := func(pattern string) string {
		return "task \"t\" {\n  inputs  = [\"" + pattern + "\"]\n  command = \"true\"\n}\n"
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		root    string
		want    string
	}{
		"a device":                {nothing, `locals { a = file("/dev/zero") }`, "outside the project"},
		"a link to a device":      {link("/dev/zero", "x"), `locals { a = file("x") }`, "benchmarks.hcl:1"},
		"a hash of a device":      {link("/dev/zero", "x"), `locals { a = filesha256("x") }`, "benchmarks.hcl:1"},
		"the memory of a process": {link("/proc/self/mem", "x"), `locals { a = filebase64("x") }`, "benchmarks.hcl:1"},
		"values of variables":     {link("/dev/zero", "vars.hcl"), `variable "v" {}`, "over 64 MiB"},
		"a pipe":                  {fifo("x"), `locals { a = file("x") }`, "not a regular file"},
		"a pipe as the root file": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "benchmarks.hcl")); err != nil {
				t.Fatal(err)
			}
			fifo("benchmarks.hcl")(t, dir)
		}, ``, "not a regular file"},
		"a pipe among the includes": {fifo("x.hcl"), `benchgraph { include = ["x.hcl"] }`, "not a regular file"},
		"a directory":               {nothing, `locals { a = file(".") }`, "is a directory"},
		"a huge file":               {sparse("x", 100<<30), `locals { a = file("x") }`, "64 MiB"},
		"a huge file's hash":        {sparse("x", 100<<30), `locals { a = filesha256("x") }`, "64 MiB"},
		"a huge root file":          {sparse("benchmarks.hcl", 100<<20), ``, "64 MiB"},
		"a huge include": {sparse("x.hcl", 60<<20), `benchgraph { include = ["*.hcl"] }`,
			"Too much to read"},
		"a large file many times": {sparse("x", 60<<20), `locals { a = [for i in range(100000) : filesha256("x")] }`,
			stopped},
		"a file outside":            {nothing, `locals { a = file("../outside.hcl") }`, "outside the project"},
		"a link outside":            {link(outside, "x"), `locals { a = file("x") }`, "benchmarks.hcl:1"},
		"an include outside":        {link(outside, "x.hcl"), `benchgraph { include = ["*.hcl"] }`, "benchmarks.hcl:1"},
		"a link to itself":          {link("x", "x"), `locals { a = file("x") }`, "benchmarks.hcl:1"},
		"files below a link to /":   {link("/", "all"), inputs("all/**"), "matches no file"},
		"all files and a link to /": {link("/", "all"), inputs("**/passwd"), "matches no file"},
		"a set of files below /": {link("/", "all"), `locals { a = fileset("all/etc", "*")[0] }`,
			"benchmarks.hcl:1"},
		"a link to the project": {link(".", "again"), inputs("again/**/*.hcl"), "matches no file"},
		"links in a circle": {func(t *testing.T, dir string) {
			link("b", "a")(t, dir)
			link("a", "b")(t, dir)
		}, inputs("a"), "benchmarks.hcl:2"},
		"a pattern outside": {nothing, inputs("../**"), "outside the project"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "benchmarks.hcl"), test.root+"\n")
			test.prepare(t, dir)
			if told := readInChild(t, dir, test.want); !strings.Contains(told, test.want) {
				t.Errorf("%q is not in what is told:\n%.2000s", test.want, told)
			}
		})
	}
}
