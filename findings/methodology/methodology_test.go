package methodology

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLongValuesAreCutToTheirDifference(t *testing.T) {
	long := "vllm bench serve --model meta-llama/Llama-3.1-8B-Instruct --dataset-name random --random-input-len 1024 " +
		"--max-model-len %s --num-prompts 1000 --request-rate inf --seed 0 --percentile-metrics ttft,tpot,itl,e2el"
	d := Difference{Name: "command", A: fmt.Sprintf(long, "4096"), B: fmt.Sprintf(long, "8192"), InA: true, InB: true}
	a, b := d.Sides()
	if want := `… "1024 --max-model-len 4096 --num-prompts 1000" …`; a != want {
		t.Errorf("got %s, want %s", a, want)
	}
	if want := `… "1024 --max-model-len 8192 --num-prompts 1000" …`; b != want {
		t.Errorf("got %s, want %s", b, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab é")), 0, 120, -1)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		d := Difference{InA: true, InB: true}
		d.A, d.B = before+text.Draw(t, "a")+after, before+text.Draw(t, "b")+after
		if a, b := d.Sides(); (a == b) != (d.A == d.B) || !utf8.ValidString(a+b) {
			t.Fatalf("%q and %q are shown as %s and %s", d.A, d.B, a, b)
		}
	})
}

func TestMethodology(t *testing.T) {
	a := Description{[]Field{
		{"model", "meta-llama/Llama-3.1-8B-Instruct"}, {"devices", "1 × H100"}, {"client", "aaa"},
	}}
	reordered := Description{[]Field{a.Fields[2], a.Fields[0], a.Fields[1]}}
	b := Description{[]Field{{"model", "meta-llama/Llama-3.1-8B"}, {"devices", "1 × H100"}, {"seed", ""}}}
	if a.Digest() != reordered.Digest() || len(a.Digest()) != 64 || a.Digest() == b.Digest() {
		t.Error("the digest is not that of the set of fields")
	}
	diff, labels := Compatible(a, b, []string{"client", "seed"})
	if len(diff) != 1 || diff[0].Name != "model" || len(labels) != 2 {
		t.Fatalf("diff %v, labels %q", diff, labels)
	}
	if want := `compared in spite of a different client: "aaa" against nothing`; labels[0].Text != want {
		t.Errorf("label %q, want %q", labels[0], want)
	}
	err := Refuse("c/human", "c/baseline", diff)
	if want := `c/human and c/baseline are not comparable: model: "meta-llama/Llama-3.1-8B-Instruct" against ` +
		`"meta-llama/Llama-3.1-8B"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	env := Description{append([]Field{{"env MODE", "fast"}, {"environment", "x"}}, a.Fields...)}
	if diff, labels := Compatible(env, a, []string{"env"}); len(diff) != 1 || diff[0].Name != "environment" ||
		len(labels) != 1 {
		t.Errorf("env allowed: diff %v, labels %q", diff, labels)
	}
	if diff, _ := Compatible(a, reordered, nil); Refuse("a", "b", diff) != nil {
		t.Errorf("equal methodologies refused: %v", diff)
	}
}

// Digests are equal exactly when nothing differs, for whatever text the fields hold.
func TestDigestProperties(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "a\nb", "a\" \"b", "\"", "\\", " ", "\xff", "\ufffd"})
	fields := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Field {
		return Field{text.Draw(t, "name"), text.Draw(t, "value")}
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := Description{fields.Draw(t, "a")}, Description{fields.Draw(t, "b")}
		if equal := len(Diff(a, b)) == 0; equal != (a.Digest() == b.Digest()) {
			t.Fatalf("diff %v, digests %s and %s", Diff(a, b), a.Digest(), b.Digest())
		}
	})
}
