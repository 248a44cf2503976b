package stats

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/benchgraph/benchgraph/stats/inference"
)

// Directions of a metric.
const (
	Higher = "higher" // more is better
	Lower  = "lower"  // less is better
)

// Runs is the pairing of samples of two runs, which share no block.
const Runs = "runs"

const (
	fewest            = FewestBlocks
	fewForPocock      = 6    // blocks below which one of several looks is judged at a stricter level
	toleranceOfMargin = 1e-9 // an estimate this close to the margin, on the log scale, has reached it
)

// FewestBlocks is the number of blocks below which no verdict is given.
const FewestBlocks = 4

// Pair is one block of a contrast: the sample of the candidate and the sample of the reference, in the metric's unit,
// both above zero. In an independent design, Block and First have no meaning, and NaN stands for a missing sample.
type Pair struct {
	Block     int
	Candidate float64
	Against   float64
	// 1: the candidate ran before all others of the block; -1: the other side did; 0: neither did, or it is not known
	First int
	// canary's number before the candidate's sample divided by its number before the other sample; 0: not known
	Canary float64
}

// Rule is the rule by which a contrast is judged.
type Rule struct {
	Better     string  // Higher or Lower
	Tie        float64 // margin of practical equality, relative; 0: 2 %
	Confidence float64 // of the reported interval, and of the whole sequence of looks; 0: 0.95
	// ascending numbers of blocks at which the contrast is judged, see Looks; empty: it is judged once, with all blocks
	Looks   []int
	Pairing string // blocked (or empty); independent and Runs give numbers without a verdict
}

// Verdict is the result of the blocks of one contrast. Effects are relative and positive when the candidate is better:
// 0.05 is 5 % better. Effect, Low, High and P are meaningful only if Blocks is at least 2.
type Verdict struct {
	Outcome Outcome `json:"outcome"`          // Win, Loss, Tie, or Inconclusive, also if there can be no verdict
	Reason  string  `json:"reason,omitempty"` // one sentence
	Effect  float64 `json:"effect"`           // exp(mean of ln ratios) - 1
	// relative advantage of running first in a block, which was removed from all figures; 0: nothing was removed
	First float64 `json:"first,omitempty"`
	// slope of the ln ratios on those of the canary, which was removed from all figures; 0: nothing was removed
	Canary     float64 `json:"canary,omitempty"`
	Low        float64 `json:"low"` // bounds of the t interval at Confidence
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence,omitempty"` // as in Rule
	// valid blocks that the figures rest on; below 2 there is no interval, at 0 there are no figures
	Blocks int     `json:"blocks"`
	Look   int     `json:"look,omitempty"`  // the last look that was reached, from 1; 0: none yet
	Looks  []int   `json:"looks,omitempty"` // as in Rule
	P      float64 `json:"p"`               // exact two-sided sign-flip test, after Holm over all contrasts
	PT     float64 `json:"p_t,omitempty"`   // t test after Holm, which decides; 0: not made
	// median of the means of all pairs of ln ratios, as a relative effect
	HodgesLehmann float64  `json:"hodges_lehmann,omitempty"`
	Value         float64  `json:"value,omitempty"`         // geometric mean of the candidate's samples
	AgainstValue  float64  `json:"against_value,omitempty"` // geometric mean of the other side's samples
	Better        string   `json:"better,omitempty"`        // as in Rule
	Tie           float64  `json:"tie,omitempty"`           // the margin that was used
	Caveats       []Caveat `json:"caveats"`
	// smallest effect that this number of blocks, with this noise, shows in four of five cases; 0: not known
	Detectable float64 `json:"detectable"`
	// blocks that would settle an inconclusive contrast, if its effect and noise stay; 0: not known
	Needed int `json:"needed,omitempty"`
	// one side is zero in all blocks, so there is no ratio
	NoRatio bool `json:"no_ratio,omitempty"`

	More     int     `json:"-"` // blocks to measure before the next look; 0: decided, or the cap is reached
	LookLow  float64 `json:"-"` // t interval at the look's level, which decides
	LookHigh float64 `json:"-"`
	RawP     float64 `json:"-"` // P before Holm
}

// TestP returns the p that reports show, with its name: PT, which decides, or P if no t test was made.
func (v Verdict) TestP() (name string, p float64) {
	if v.PT > 0 {
		return "p_t", v.PT
	}
	return "p", v.P
}

// Judge judges one contrast that stands alone. See JudgeTogether.
func Judge(pairs []Pair, rule Rule) Verdict {
	return JudgeTogether([][]Pair{pairs}, rule)[0]
}

// JudgeTogether judges the contrasts of one commit on one metric, which share their blocks and therefore the risk of a
// false verdict. It returns one verdict for each, in their order.
//
// With d = ln(candidate/against), oriented so that positive is better, and margin m = ln(1+Tie):
//
//   - win, loss: the t interval of mean(d) at the look's level (Pocock, see Looks) excludes 0, |mean(d)| >= m, and
//     the contrast survives Holm's correction of the t test's p over the contrasts at the look's level;
//   - tie: the 90 % t interval of mean(d) lies inside ±m, which is two one-sided tests at 5 %;
//   - inconclusive: otherwise. More is the number of blocks to measure before the next look. It is 0 at the last
//     look, and where the chance of a verdict at the last look is below 10 % (futility).
//
// The exact sign-flip p is reported and decides nothing: with 4 blocks it cannot be below 0.125, whatever they hold.
//
// Two zeros in a block are a difference of 0. Where one side is zero in every block and the other one in none, the t
// interval of the plain difference decides between win, loss and inconclusive: no ratio exists, and no margin applies.
//
// If the order in a block, or the machine's speed as the canary before each sample measures it, changes samples beyond
// doubt, that change is removed from d; see withoutCovariates.
//
// There is no verdict below 4 blocks, before the first look, in an independent design, or when a value cannot have a
// logarithm: no sample is left out to make a verdict possible. All blocks count, also those after a look that already
// decided.
func JudgeTogether(contrasts [][]Pair, rule Rule) []Verdict {
	rule = rule.withDefaults()
	judged := make([]contrast, len(contrasts))
	for i, pairs := range contrasts {
		judged[i] = measure(pairs, rule)
	}
	survives := correct(judged, rule)
	verdicts := make([]Verdict, len(contrasts))
	for i := range judged {
		c := &judged[i]
		if c.testable {
			c.decide(rule, survives[i])
		}
		verdicts[i] = c.Verdict
	}
	return verdicts
}

func (r Rule) withDefaults() Rule {
	if r.Tie == 0 {
		r.Tie = usualTie
	}
	r.Confidence = cmp.Or(r.Confidence, 0.95)
	return r
}

// level returns the level of the test at a look with the given number of blocks.
//
// Pocock's level is for values whose variance is known. The t statistics of 4 or 5 blocks depend less on those of later
// looks, so the level would be crossed too often: five looks at 0.0158 call 5.3 % of equal pairs a win or a loss at 20
// % noise, and 1.1 % at 2 % noise. With two thirds of the level at such a look, these are 5.0 % and 0.9 %.
func (r Rule) level(blocks int) float64 {
	level := inference.Pocock(max(1, len(r.Looks)), 1-r.Confidence)
	if len(r.Looks) > 1 && blocks < fewForPocock {
		level *= 2.0 / 3
	}
	return level
}

// flaw returns the reason why the rule cannot judge; empty: it can.
func (r Rule) flaw() string {
	switch {
	case r.Better != Higher && r.Better != Lower:
		return "no verdict: it is not known whether higher or lower is better; say better = \"higher\" or " +
			"\"lower\" in the metric, and the measured blocks are judged"
	case !(r.Tie > 0 && r.Tie < 1):
		return fmt.Sprintf("no verdict: tie = %v does not lie between 0 and 1", r.Tie)
	case !(r.Confidence > 0.5 && r.Confidence < 1):
		return fmt.Sprintf("no verdict: confidence = %v does not lie between 0.5 and 1", r.Confidence)
	case r.Pairing != "" && r.Pairing != "blocked" && r.Pairing != "independent" && r.Pairing != Runs:
		return fmt.Sprintf("no verdict: pairing = %q is neither blocked nor independent", r.Pairing)
	}
	for i := 1; i < len(r.Looks); i++ {
		if r.Looks[i] <= r.Looks[i-1] {
			return fmt.Sprintf("no verdict: the looks %v do not ascend", r.Looks)
		}
	}
	return ""
}

// decide applies the rule to a testable contrast.
func (c *contrast) decide(rule Rule, survives bool) {
	margin := math.Log1p(rule.Tie)
	level := rule.level(c.Blocks)
	low, high := c.estimate.Interval(1 - level)
	c.LookLow, c.LookHigh = relative(low), relative(high)
	tieLow, tieHigh := c.estimate.Interval(0.90)
	size, span, none := rule.texts(c.Effect, low, high)

	excludes := low > 0 || high < 0
	large := math.Abs(c.estimate.Mean) >= margin-toleranceOfMargin
	switch {
	case excludes && large && survives && c.estimate.Mean > 0:
		c.Outcome = Win
		c.Reason = fmt.Sprintf("better by %s; the interval at the look's level, %s, excludes %s", size, span, none)
	case excludes && large && survives:
		c.Outcome = Loss
		c.Reason = fmt.Sprintf("worse: %s; the interval at the look's level, %s, excludes %s", size, span, none)
	case tieLow > -margin && tieHigh < margin:
		c.Outcome = Tie
		_, inside, _ := rule.texts(c.Effect, tieLow, tieHigh)
		c.Reason = fmt.Sprintf("the 90 %% interval, %s, lies inside ±%s", inside, plain(rule.Tie))
	default:
		c.Outcome = Inconclusive
	}
	c.foresee(margin, rule)
	if c.Outcome != Inconclusive {
		return
	}
	stopped := ""
	if c.More = Next(rule.Looks, c.Blocks); c.More > 0 && c.estimate.Error > 0 {
		last := rule.Looks[len(rule.Looks)-1]
		if chance := c.chance(last, margin, rule.level(last)); chance < futile {
			c.More = 0
			stopped = fmt.Sprintf("stopped after %d of at most %d blocks, because a verdict at the last look has a "+
				"chance of only %.0f %%", c.Blocks, last, 100*chance)
		}
	}
	c.Reason = c.whyOpen(rule, stopped, excludes, large, low, high)
}

// whyOpen names the condition of a verdict that does not hold.
func (c *contrast) whyOpen(rule Rule, stopped string, excludes, large bool, low, high float64) string {
	var why string
	size, span, none := rule.texts(c.Effect, low, high)
	switch {
	case !excludes:
		why = fmt.Sprintf("the interval at the look's level, %s, includes %s and is too wide for a tie at ±%s",
			span, none, plain(rule.Tie))
	case !large:
		why = fmt.Sprintf("the difference of %s is real but below the margin of %s, and the interval %s reaches too "+
			"far for a tie",
			size, plain(rule.Tie), span)
	default:
		why = fmt.Sprintf("the difference of %s does not survive Holm's correction over the commit's contrasts (p_t = "+
			"%.3g)", size, c.PT)
	}
	if c.More > 0 {
		return fmt.Sprintf("open after %d of at most %d blocks: %s", c.Blocks, rule.Looks[len(rule.Looks)-1], why)
	}
	if c.Detectable > 0 {
		why += fmt.Sprintf("; these blocks show an effect of %s %% or more in four of five cases",
			TwoDigits(100*c.Detectable))
	}
	if c.Needed > 0 {
		why += fmt.Sprintf(", and about %d blocks would settle it", c.Needed)
	}
	if stopped == "" {
		stopped = fmt.Sprintf("after %d blocks", c.Blocks)
	}
	return stopped + ": " + why
}

// texts writes a relative effect, an interval of ln ratios, and the absence of an effect: +5.20 %, or ×1.052 if less is
// better, since 434 % of a time reads as slower.
func (r Rule) texts(effect, low, high float64) (size, span, none string) {
	c := Comparison{Verdict: Verdict{Better: r.Better, Blocks: fewest, Effect: effect, Low: relative(low),
		High: relative(high)}}
	if none = "0"; c.factors() {
		none = "×1"
	}
	return c.ratioText(effect, false), c.IntervalText(), none
}

// plain writes a relative size without a sign.
func plain(size float64) string { return fmt.Sprintf("%.4g %%", 100*size) }

const (
	usualTie = 0.02
	tailTie  = 0.05
)

// DefaultTie returns the margin of practical equality for a metric when the file declares none: 5 % for the time to
// first token and for any 99th percentile, which are noisier than other metrics, and 2 % for all else.
func DefaultTie(metric string) float64 {
	name := strings.ToLower(metric)
	if strings.Contains(name, "ttft") || strings.Contains(name, "p99") {
		return tailTie
	}
	return usualTie
}
