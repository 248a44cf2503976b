package stats

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// EffectText returns the effect of a row for people: +5.20 % if more is better, and ×3.32 (time −69.9 %) if less is,
// since 232 % of a time reads as slower. A row without a ratio shows both values; a row without blocks shows "-".
func (c *Comparison) EffectText() string {
	switch {
	case c.Blocks == 0:
		return "-"
	case c.NoRatio:
		return fmt.Sprintf("%.6g → %.6g", c.AgainstValue, c.Value)
	}
	return c.ratioText(c.Effect, true)
}

// IntervalText returns the interval of a row for people; empty: there is none.
func (c *Comparison) IntervalText() string {
	if c.Blocks < 2 || c.NoRatio {
		return ""
	}
	return c.ratioText(c.Low, false) + " to " + c.ratioText(c.High, false)
}

// DirectionText returns the direction in which the metric of a row improves, for people.
func (c *Comparison) DirectionText() string {
	switch c.Better {
	case Higher:
		return "↑ higher is better"
	case Lower:
		return "↓ lower is better"
	}
	return ""
}

func (c *Comparison) ratioText(effect float64, whole bool) string {
	switch {
	case !c.factors():
		return percent(2, effect)
	case c.Better != Lower || !whole:
		return c.factor(effect)
	}
	change := math.Inf(1) // of the value itself
	if effect > -1 {
		change = 1/(1+effect) - 1
	}
	text := percent(1, min(change, 1e6))
	if math.Abs(change) < 0.1 {
		text = percent(2, change)
	}
	return fmt.Sprintf("%s (%s %s)", c.factor(effect), c.quantity(), text)
}

// factors reports whether the effect and both ends of the interval of a row are written as ratios.
func (c *Comparison) factors() bool { return c.Better == Lower || max(c.Effect, c.Low, c.High) >= 9 }

// percent writes a relative effect with its sign: −5.20 %.
func percent(digits int, effect float64) string {
	return strings.Replace(fmt.Sprintf("%+.*f %%", digits, 100*effect), "-", "−", 1)
}

// factor writes a relative effect as a ratio: ×3.32. The ends of an interval have as many digits as the effect.
func (c *Comparison) factor(effect float64) string {
	switch {
	case effect >= 9 || effect < -0.99:
		return fmt.Sprintf("×%.4g", 1+effect)
	case math.Abs(c.Effect) < 0.1:
		return fmt.Sprintf("×%.4f", 1+effect)
	}
	return fmt.Sprintf("×%.2f", 1+effect)
}

// quantity returns the kind of amount that the metric measures.
func (c *Comparison) quantity() string {
	amount, per, rate := strings.Cut(c.Unit, "/")
	switch amount[strings.LastIndexByte(amount, '-')+1:] {
	case "ns", "us", "ms", "s", "min", "h", "sec":
		if !rate || per == "op" {
			return "time"
		}
	}
	return "value"
}

// Text returns the attempts for people: "7 valid, 2 voided (one: transient [oom] × 2)".
func (a *Attempts) Text() string {
	if a == nil {
		return ""
	}
	text := fmt.Sprintf("%d valid", a.Valid)
	for _, part := range []struct {
		n    int
		word string
	}{{a.Voided, "voided"}, {a.Replaced, "replaced"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	var causes []string
	for _, c := range a.Causes {
		causes = append(causes, fmt.Sprintf("%s: %s [%s] × %d", cmp.Or(c.Variant, "machine"), c.Class,
			cmp.Or(c.Rule, "undiagnosed"), c.Count))
	}
	if len(causes) > 0 {
		text += " (" + strings.Join(causes, ", ") + ")"
	}
	return text
}

// Headline is the largest q of a win or loss that a headline may count.
const Headline = 0.05

// Stands reports whether a headline may count a row: it is a win or a loss on the primary metric with a q of at most
// Headline, so that few rows of such a list are false.
func (c *Comparison) Stands() bool {
	return c.Primary && (c.Outcome == Win || c.Outcome == Loss) && c.Q > 0 && c.Q <= Headline
}

// Doubtful reports whether a row is a win or a loss on the primary metric whose q is above Headline. A row without a q
// is in no list and not doubtful.
func (c *Comparison) Doubtful() bool {
	return c.Primary && (c.Outcome == Win || c.Outcome == Loss) && c.Q > Headline
}
