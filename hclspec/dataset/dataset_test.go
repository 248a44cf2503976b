package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// rev returns a hash that begins with the digits of n.
func rev(n int) string { return fmt.Sprintf("%08x%032x", n, n) }

func TestFormatsHoldTheSameTable(t *testing.T) {
	type row struct {
		Commit  string   `parquet:"commit_hash" json:"commit_hash"`
		Subject *string  `parquet:"commit_subject,optional" json:"commit_subject"`
		Config  string   `parquet:"gpu_config" json:"gpu_config"`
		Tokens  int64    `parquet:"tokens" json:"tokens"`
		Ratio   float64  `parquet:"ratio" json:"ratio"`
		Paths   []string `parquet:"paths,list" json:"paths"`
	}
	title := `Fix "the" ${thing}`
	table := []row{{rev(1), &title, "H100:4", 7, 0.5, []string{"a", "b"}}, {rev(2), nil, "", 8, 1e-3, nil}}
	var parq bytes.Buffer
	w := parquet.NewGenericWriter[row](&parq)
	if _, err := w.Write(table); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, r := range table {
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	array, _ := json.Marshal(table)
	object, _ := json.Marshal(map[string]any{"generated": "x", "rows": table, "more": []string{"a"}})
	texts := map[string][]byte{"parquet": parq.Bytes(), "jsonl": lines.Bytes(), "json": array, "object": object}
	o := Options{Params: []string{"tokens", "ratio", "paths"}}
	want := `commit "00000001" {
  rev    = "` + rev(1) + `"
  title  = "Fix \"the\" $${thing}"
  params = { gpus = 4, tokens = 7, ratio = 0.5, paths = ["a", "b"] }
}

commit "00000002" {
  rev    = "` + rev(2) + `"
  params = { tokens = 8, ratio = 0.001 }
}
`
	for name, text := range texts {
		rows, problems, err := Read(name, text)
		if err != nil || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", name, problems, err)
		}
		commits, problems, err := Commits(rows, o)
		if err != nil || len(problems) > 0 {
			t.Fatalf("%s: %v, %v", name, problems, err)
		}
		var b strings.Builder
		if err := Write(&b, nil, commits, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOneBadRowStopsNoOther(t *testing.T) {
	text := "sha,parent,title,model,perf_command\n" +
		rev(1) + "," + rev(9) + ",one,m,\n" +
		"nonsense,,two,m,\n" +
		",,three,m,\n" +
		rev(1)[:12] + ",,four,m,\n" +
		rev(1) + ",,five,m,\n" +
		"too,few\n" +
		`bro"ken` + "\n" +
		strings.ToUpper(rev(2)) + ",abc1234,eight,m,python benchmark_latency.py --model other -tp 2\n" +
		rev(3) + "," + rev(3) + ",nine,NaN,a | b\n"
	rows, problems, err := Read("t.csv", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	commits, more, err := Commits(rows, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range append(problems, more...) {
		got = append(got, p.String())
	}
	want := []string{
		"t.csv: line 7: it has 2 fields, the heading 5",
		`t.csv: line 8: bare " in non-quoted-field`,
		`t.csv: line 3: column "sha" has "nonsense", which is no hash of a commit`,
		"t.csv: line 4: it names no commit",
		`t.csv: line 5: column "sha" has 000000010000, 12 digits of a hash, and 40 are needed`,
		"t.csv: line 6: commit 00000001 is that of t.csv: line 2",
		`t.csv: line 9: the parent is left to git: column "parent" has abc1234, 7 digits of a hash, and 40 are needed`,
		`t.csv: line 9: model is "m", and its command has "other", which is written`,
		"t.csv: line 10: the parent is left to git: the table names the commit itself",
		"t.csv: line 10: the command: it is not one plain command, so it is kept whole",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(commits) != 3 || commits[0].Parent != rev(9) || commits[1].Rev != rev(2) || commits[2].Name != rev(3)[:8] {
		t.Errorf("commits: %+v", commits)
	}
}

func TestNamesThatBeginAlikeAreLonger(t *testing.T) {
	a, b := strings.Repeat("a", 8)+strings.Repeat("1", 32), strings.Repeat("a", 8)+strings.Repeat("2", 32)
	rows, _, err := Read("", []byte(`[{"sha":"`+a+`"},{"sha":"`+b+`"},{"sha":"`+rev(5)+`"}]`))
	if err != nil {
		t.Fatal(err)
	}
	commits, _, err := Commits(rows, Options{})
	if err != nil || commits[0].Name != a[:12] || commits[1].Name != b[:12] || commits[2].Name != rev(5)[:8] {
		t.Errorf("%v: %+v", err, commits)
	}
}

func TestNoTable(t *testing.T) {
	for _, text := range []string{"", " \n", "\x00\x01\x02", "<html>", "3", `"x"`, "[", "PAR1", "PAR1xxxxPAR1"} {
		rows, _, err := Read("x", []byte(text))
		if err == nil {
			if _, _, err = Commits(rows, Options{}); err == nil {
				t.Errorf("%q is a table: %v", text, rows)
			}
		}
	}
}

// FuzzRead reads hostile tables. Any content becomes blocks that HCL reads, in canonical layout.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"sha":"` + rev(1) +
		`","title":"${x}\n%{if}","model":"a\"b","perf_command":"A=1 vllm bench serve --model '\\n' -tp 4"}]`))
	f.Add([]byte("sha;title;env\n" + rev(2) + ";a}b;c\n"))
	f.Add([]byte(`{"sha":"` + rev(3) + `","for":[1e99,{"for":null}]}` + "\n{}\n"))
	var parq bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Sha  string
		List []int32
	}](&parq, parquet.Compression(&parquet.Snappy))
	_, err := w.Write([]struct {
		Sha  string
		List []int32
	}{{rev(4), []int32{1, 2}}})
	if err != nil || w.Close() != nil {
		f.Fatal(err)
	}
	f.Add(parq.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			rows, _, err := Read("x", text)
			if err != nil {
				return
			}
			o := Options{Defaults: map[string]string{"gpus": "1"}}
			for _, name := range []string{"for", "env", "List"} {
				if len(rows) > 0 {
					if _, ok := rows[0].Fields[name]; ok {
						o.Params = append(o.Params, name)
					}
				}
			}
			commits, _, err := Commits(rows, o)
			if err != nil {
				return
			}
			var b bytes.Buffer
			if err := Write(&b, []string{"x\ny"}, commits, o.Defaults); err != nil {
				t.Fatal(err)
			}
			if len(text) > 100_000 {
				return
			}
			file, diags := hclsyntax.ParseConfig(b.Bytes(), "x", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatalf("%v in\n%s", diags, &b)
			}
			if got := len(file.Body.(*hclsyntax.Body).Blocks); got != len(commits)+1 {
				t.Fatalf("%d blocks of %d commits", got, len(commits))
			}
			if !bytes.Equal(hclwrite.Format(b.Bytes()), b.Bytes()) {
				t.Fatalf("not canonical:\n%s", &b)
			}
		})
	})
}

// TestLargeParquet reads a file like those of other programs: many pages, dictionaries, all usual compressions.
func TestLargeParquet(t *testing.T) {
	needtest.NoRace(t)
	type row struct {
		Sha   string `parquet:"sha,dict"`
		Model string `parquet:"model,dict"`
		Log   string
		Ratio float64
	}
	table := make([]row, 5000)
	for i := range table {
		table[i] = row{rev(i + 1), "model", strings.Repeat("line of a log\n", i%50), float64(i)}
	}
	for _, c := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd,
		&parquet.Brotli, &parquet.Lz4Raw} {
		for _, version := range []int{1, 2} {
			var b bytes.Buffer
			w := parquet.NewGenericWriter[row](&b, parquet.Compression(c), parquet.DataPageVersion(version),
				parquet.PageBufferSize(4096), parquet.MaxRowsPerRowGroup(900))
			if _, err := w.Write(table); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			rows, _, err := Read("x", b.Bytes())
			if err != nil || len(rows) != len(table) || rows[4999].Fields["sha"] != rev(5000) ||
				rows[49].Fields["Log"] != table[49].Log {
				t.Fatalf("%s, version %d: %d rows, %v", c, version, len(rows), err)
			}
			for part := range 8 {
				damaged := bytes.Clone(b.Bytes())
				copy(damaged[len(damaged)*part/8:], "\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x7f")
				_, _, _ = Read("x", damaged) // it may be read or refused, and must end
			}
		}
	}
}

func BenchmarkReadParquet(b *testing.B) {
	type row struct {
		Sha, Log string
		Ratio    float64
	}
	for _, c := range []compress.Codec{&parquet.Zstd, &parquet.Lz4Raw} {
		b.Run(c.String(), func(b *testing.B) {
			var file bytes.Buffer
			w := parquet.NewGenericWriter[row](&file, parquet.Compression(c))
			for i := range 5000 {
				if _, err := w.Write([]row{{rev(i), rev(i * 7), float64(i)}}); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(file.Len()))
			for b.Loop() {
				if _, _, err := Read("x", file.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// No credential in a command gets into a file. Variables, placeholders and settings with similar names stay.
func TestNoCredentialIsWritten(t *testing.T) {
	const bench = "python benchmark_latency.py --model m"
	for line, want := range map[string]string{
		"HF_TOKEN=hf_0123456789 " + bench + " --hf-token hf_0123456789 -tp 2": "gpus = 2",
		"HF_TOKEN='hf 0123456789' " + bench:                                   `model = "m"`,
		"export HF_TOKEN=hf_0123456789; " + bench:                             `"export HF_TOKEN; ` + bench + `"`,
		bench + " --api-key=sk-0123456789":                                    `model = "m"`,
		bench + " --api-key EMPTY":                                            `"--api-key EMPTY"`,
		"HF_TOKEN=$HF_TOKEN_OF_MINE; " + bench:                                `HF_TOKEN=$HF_TOKEN_OF_MINE`,
		"MAX_TOKENS=1234567890 " + bench:                                      `MAX_TOKENS = "1234567890"`,
	} {
		rows, _, err := Read("", fmt.Appendf(nil, `[{"sha":%q,"perf_command":%q}]`, rev(1), line))
		if err != nil {
			t.Fatal(err)
		}
		commits, problems, err := Commits(rows, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := Write(&out, nil, commits, nil); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, want) || strings.Contains(text, "0123456789") {
			t.Errorf("%s:\n%s\nwant %s", line, text, want)
		}
		if told := strings.Contains(fmt.Sprint(problems), "credential"); told != strings.Contains(line, "0123456789") {
			t.Errorf("%s: %v", line, problems)
		}
	}
}
