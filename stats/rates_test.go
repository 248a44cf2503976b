package stats

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/perf/benchmath"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// run is one run of a simulated machine.
type run struct {
	at        int     // runs that the machine made before it
	candidate bool    // else the baseline
	first     bool    // in its block or series
	effect    float64 // true ln effect of what runs
}

// noises are the ways in which a machine varies: the difference of a run's ln value from its true one, above zero if
// the run is faster. Each call makes a new machine, whose runs are asked for in order.
var noises = []struct {
	name, says string
	machine    func(*rand.Rand) func(run) float64
}{
	{"iid", "normal, 1.4 % a run, so 2 % a pair", func(r *rand.Rand) func(run) float64 {
		return func(run) float64 { return usual * r.NormFloat64() }
	}},
	{"drift", "0.2 % slower with each run", func(r *rand.Rand) func(run) float64 {
		return func(x run) float64 { return usual*r.NormFloat64() - 0.002*float64(x.at) }
	}},
	{"warm-up", "10 % slower at first, a quarter of that after 5 runs", func(r *rand.Rand) func(run) float64 {
		return func(x run) float64 { return usual*r.NormFloat64() - 0.1*math.Exp2(-float64(x.at)/2.5) }
	}},
	{"autocorrelated", "AR(1), 0.9 from run to run, 3 % in all", func(r *rand.Rand) func(run) float64 {
		state := 0.03 * r.NormFloat64()
		return func(run) float64 {
			state = 0.9*state + 0.03*math.Sqrt(1-0.81)*r.NormFloat64()
			return usual*r.NormFloat64() + state
		}
	}},
	{"wander", "each variant has an AR(1) of its own, 0.7 from block to block, 1 % in all",
		func(r *rand.Rand) func(run) float64 {
			state := map[bool]float64{false: 0.01 * r.NormFloat64(), true: 0.01 * r.NormFloat64()}
			return func(x run) float64 {
				state[x.candidate] = 0.7*state[x.candidate] + 0.01*math.Sqrt(1-0.49)*r.NormFloat64()
				return usual*r.NormFloat64() + state[x.candidate]
			}
		}},
	{"bimodal", "3 of 10 runs are 5 % slower", func(r *rand.Rand) func(run) float64 {
		return func(run) float64 { return usual*r.NormFloat64() - sometimes(r, 0.3, 0.05) }
	}},
	{"sticky", "a mode 5 % slower, entered and left with every tenth run", func(r *rand.Rand) func(run) float64 {
		slow := r.IntN(2) == 0
		return func(run) float64 {
			if r.Float64() < 0.1 {
				slow = !slow
			}
			if slow {
				return usual*r.NormFloat64() - 0.05
			}
			return usual * r.NormFloat64()
		}
	}},
	{"1 % tails", "1 of 100 runs is 20 to 50 % slower", func(r *rand.Rand) func(run) float64 {
		return func(run) float64 { return usual*r.NormFloat64() - sometimes(r, 0.01, 0.2+0.3*r.Float64()) }
	}},
	{"5 % tails", "5 of 100 runs are", func(r *rand.Rand) func(run) float64 {
		return func(run) float64 { return usual*r.NormFloat64() - sometimes(r, 0.05, 0.2+0.3*r.Float64()) }
	}},
	{"t2", "Student's t with 2 degrees of freedom, scaled by 1 %", func(r *rand.Rand) func(run) float64 {
		// chi² of 2, halved, is exponential
		return func(run) float64 { return 0.01 * r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }
	}},
	{"rounding", "values of about 100 are printed without decimals", func(r *rand.Rand) func(run) float64 {
		return func(x run) float64 {
			exact := usual * r.NormFloat64()
			return math.Log(math.Round(100*math.Exp(x.effect+exact))/100) - x.effect
		}
	}},
	{"first-position", "the first run of a block is 5 % slower", func(r *rand.Rand) func(run) float64 {
		return func(x run) float64 {
			if x.first {
				return usual*r.NormFloat64() - 0.05
			}
			return usual * r.NormFloat64()
		}
	}},
	{"heteroscedastic", "the candidate varies by 2.7 %, the baseline by 0.7 %", func(r *rand.Rand) func(run) float64 {
		return func(x run) float64 {
			if x.candidate {
				return 0.027 * r.NormFloat64()
			}
			return 0.007 * r.NormFloat64()
		}
	}},
	{"skewed", "exponential on the slow side, 2 %", func(r *rand.Rand) func(run) float64 {
		return func(run) float64 { return -0.02 * r.ExpFloat64() }
	}},
}

const usual = 0.02 / math.Sqrt2 // noise of one run whose pairs vary by 2 %

// sometimes returns amount in a share of the cases, else 0.
func sometimes(r *rand.Rand, share, amount float64) float64 {
	if r.Float64() < share {
		return amount
	}
	return 0
}

// tally counts the results of a method over many trials of one machine and one effect.
type tally struct{ trials, better, worse, covered, runs int }

func (t *tally) share(n int) float64 { return float64(n) / float64(t.trials) }

// machine runs variants in turn. The baseline's true value is 100.
type machine struct {
	noise  func(run) float64
	canary func() float64 // number of the canary, asked before each run; nil: there is none
	blind  bool           // the judge knows neither orders nor the canary
	effect float64        // ln of the candidate's true ratio, above zero where it is better
	runs   int
}

func (m *machine) run(candidate, first bool) float64 {
	value, _ := m.watched(candidate, first)
	return value
}

// watched returns the value of a run, and the number of the canary before it.
func (m *machine) watched(candidate, first bool) (value, canary float64) {
	x := run{at: m.runs, candidate: candidate, first: first}
	if candidate {
		x.effect = m.effect
	}
	m.runs++
	if m.canary != nil {
		canary = m.canary()
	}
	return 100 * math.Exp(x.effect+m.noise(x)), canary
}

// methods are the ways to judge a candidate on a machine.
var methods = []struct {
	name  string
	judge func(r *rand.Rand, m *machine, t *tally)
}{
	{"looks 4, 6, 9, 12, 15", func(r *rand.Rand, m *machine, t *tally) { judgeBlocks(r, m, t, Looks(4, 15)) }},
	{"fixed 15", func(r *rand.Rand, m *machine, t *tally) { judgeBlocks(r, m, t, Looks(15, 15)) }},
	{"benchstat 10 + 10", judgeBenchstat},
	{"single runs ±2 %", judgeSingle},
}

// judgeBlocks is the procedure of this package: look, and measure more while the verdict asks for it.
func judgeBlocks(r *rand.Rand, m *machine, t *tally, looks []int) {
	rule := Rule{Better: Higher, Looks: looks}
	var pairs []Pair
	v := Verdict{More: looks[0]}
	ahead := false // the candidate runs before the baseline
	for v.More > 0 {
		for range v.More {
			p := Pair{Block: len(pairs) + 1}
			if ahead = !ahead; len(pairs)%2 == 0 { // the orders of two blocks are each other's reverse
				ahead = r.IntN(2) == 0
			}
			var own, other float64
			if ahead {
				p.Candidate, own = m.watched(true, true)
				p.Against, other = m.watched(false, false)
				p.First = 1
			} else {
				p.Against, other = m.watched(false, true)
				p.Candidate, own = m.watched(true, false)
				p.First = -1
			}
			if other > 0 {
				p.Canary = own / other
			}
			if m.blind {
				p.First, p.Canary = 0, 0
			}
			pairs = append(pairs, p)
		}
		v = Judge(pairs, rule)
	}
	t.count(v.Outcome == Win, v.Outcome == Loss)
	if effect := math.Expm1(m.effect); v.Low <= effect && effect <= v.High {
		t.covered++
	}
}

// judgeBenchstat runs one variant ten times, then the other one, and asks benchstat.
func judgeBenchstat(_ *rand.Rand, m *machine, t *tally) {
	series := func(candidate bool) *benchmath.Sample {
		values := make([]float64, 10)
		for i := range values {
			values[i] = m.run(candidate, i == 0)
		}
		return benchmath.NewSample(values, &benchmath.DefaultThresholds)
	}
	base, own := series(false), series(true)
	significant := benchmath.AssumeNothing.Compare(base, own).P < benchmath.DefaultThresholds.CompareAlpha
	more := benchmath.AssumeNothing.Summary(own, 0.95).Center > benchmath.AssumeNothing.Summary(base, 0.95).Center
	t.count(significant && more, significant && !more)
}

// judgeSingle runs each variant once.
func judgeSingle(_ *rand.Rand, m *machine, t *tally) {
	base, own := m.run(false, true), m.run(true, false)
	t.count(own >= 1.02*base, own <= base/1.02)
}

func (t *tally) count(better, worse bool) {
	t.trials++
	if better {
		t.better++
	}
	if worse {
		t.worse++
	}
}

// effects are the true effects under which each method is tried.
var effects = []float64{0, 0.03}

// fare tries a method a number of times on machines of one kind, under each of effects.
func fare(noise, method, trials int) []tally {
	tallies := make([]tally, len(effects))
	for i := range tallies {
		r := rand.New(rand.NewPCG(20260101, uint64(1000*noise+10*method+i)))
		for range trials {
			m := &machine{noise: noises[noise].machine(r), effect: math.Log1p(effects[i])}
			methods[method].judge(r, m, &tallies[i])
			tallies[i].runs += m.runs
		}
	}
	return tallies
}

// cell holds the figures of a method in the table: false verdicts without an effect, coverage, wins with an effect of 3
// %, runs.
func cell(t []tally, interval bool) string {
	null, real := t[0], t[1]
	text := fmt.Sprintf("%.1f", 100*null.share(null.better+null.worse))
	if interval {
		text += fmt.Sprintf(" · %.0f", 100*(null.share(null.covered)+real.share(real.covered))/2)
	}
	text += fmt.Sprintf(" · %.0f", 100*real.share(real.better))
	if runs := (null.share(null.runs) + real.share(real.runs)) / 2; interval {
		text += fmt.Sprintf(" · %.1f", runs)
	}
	return text
}

const page = "../docs/statistics.md"

var (
	table      = regexp.MustCompile(`(?s)<!-- rates: made by bench/verdicts -->\n(.*?)<!-- end -->`)
	covariates = regexp.MustCompile(`(?s)<!-- covariates: made by bench/verdicts -->\n(.*?)<!-- end -->`)
)

var trials = flag.Int("rates", 0, "simulate so many contrasts for each figure and write the tables of "+page)

// rowsOf returns the rows of a table of the page, below its head.
func rowsOf(t *testing.T, table *regexp.Regexp) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := table.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no table like %s", page, table)
	}
	var rows [][]string
	for _, row := range strings.Split(strings.TrimSpace(string(found[1])), "\n")[2:] {
		rows = append(rows, strings.Split(strings.Trim(row, "| "), " | "))
	}
	return rows
}

// agree compares a count with a figure of the page, in per cent.
func agree(t *testing.T, what string, count, trials int, figure string) {
	t.Helper()
	want, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		t.Fatalf("%s: %s", what, figure)
	}
	spread := 4*math.Sqrt(max(want/100*(1-want/100), 0.005)/float64(trials)) + 0.005
	if got := float64(count) / float64(trials); math.Abs(got-want/100) > spread {
		t.Errorf("%s: %.1f %% in %d trials, and the page says %s %%", what, 100*got, trials, figure)
	}
}

// The table of the page shows how methods fare on machines of many kinds. Without -rates, fewer trials with other
// random numbers must agree with the table. The promises of the page must hold in the table.
func TestRates(t *testing.T) {
	needtest.NoRace(t)
	if *trials > 0 {
		write(t, *trials)
	}
	rows := rowsOf(t, table)
	if len(rows) != len(noises) {
		t.Fatalf("%d rows of %d", len(rows), len(noises))
	}
	for i, columns := range rows {
		if len(columns) != len(methods)+2 || columns[0] != noises[i].name || columns[1] != noises[i].says {
			t.Fatalf("not a row of %s: %s", noises[i].name, columns)
		}
		figures := strings.Split(columns[2], " · ") // of the looks
		const few = 250
		seen := fare(i, 0, few)
		agree(t, noises[i].name+", false verdicts", seen[0].better+seen[0].worse, few, figures[0])
		agree(t, noises[i].name+", coverage", (seen[0].covered+seen[1].covered)/2, few, figures[1])
		agree(t, noises[i].name+", wins", seen[1].better, few, figures[2])
		wrong, _ := strconv.ParseFloat(figures[0], 64)
		// Only what moves the variants apart from each other for long is beyond a blocked design.
		if most := map[string]float64{"iid": 1, "wander": 100}[noises[i].name]; wrong > cmp.Or(most, 5) {
			t.Errorf("%s: %v %% false verdicts", noises[i].name, wrong)
		}
	}
}

// watched are machines whose runs have known properties beside their numbers.
var watched = []struct {
	says    string
	machine func(*rand.Rand) (noise func(run) float64, canary func() float64)
}{
	{"2 % a pair, nothing to know", func(r *rand.Rand) (func(run) float64, func() float64) {
		return func(run) float64 { return usual * r.NormFloat64() }, nil
	}},
	{"20 % a pair, nothing to know", func(r *rand.Rand) (func(run) float64, func() float64) {
		return func(run) float64 { return 10 * usual * r.NormFloat64() }, nil
	}},
	{"2 % a pair, the first run of a block is 2 % slower", func(r *rand.Rand) (func(run) float64, func() float64) {
		return first(r, 0.02), nil
	}},
	{"2 % a pair, the first run of a block is 5 % slower", func(r *rand.Rand) (func(run) float64, func() float64) {
		return first(r, 0.05), nil
	}},
	{"2 % a pair, a canary that varies by 2 % and tells nothing",
		func(r *rand.Rand) (func(run) float64, func() float64) {
			return func(run) float64 {
				return usual * r.NormFloat64()
			}, func() float64 { return math.Exp(0.02 * r.NormFloat64()) }
		}},
	{"20 % a pair, the same canary", func(r *rand.Rand) (func(run) float64, func() float64) {
		return func(run) float64 {
			return 10 * usual * r.NormFloat64()
		}, func() float64 { return math.Exp(0.02 * r.NormFloat64()) }
	}},
	{"2 % a pair, the machine changes by 3 % from run to run, and a canary tells it to within 0.5 %",
		func(r *rand.Rand) (func(run) float64, func() float64) {
			return unsteady(r, 0)
		}},
	{"the same, and the first run of a block is 5 % slower", func(r *rand.Rand) (func(run) float64, func() float64) {
		return unsteady(r, 0.05)
	}},
}

// first is a machine on which the first run of a block is slower.
func first(r *rand.Rand, by float64) func(run) float64 {
	return func(x run) float64 {
		if x.first {
			return usual*r.NormFloat64() - by
		}
		return usual * r.NormFloat64()
	}
}

// unsteady is a machine whose speed differs from run to run. A canary tells the speed to within half a per cent.
func unsteady(r *rand.Rand, by float64) (func(run) float64, func() float64) {
	speed, rest := 0.0, first(r, by)
	return func(x run) float64 { return rest(x) + speed }, func() float64 {
		speed = 0.03 * r.NormFloat64()
		return math.Exp(speed + 0.005*r.NormFloat64())
	}
}

// watch tries the looks on machines of one kind, under each of effects, with and without the known properties of runs.
func watch(kind int, blind bool, trials int) []tally {
	tallies := make([]tally, len(effects))
	for i := range tallies {
		r := rand.New(rand.NewPCG(20260102, uint64(10*kind+i))) // the same runs for both
		for range trials {
			m := &machine{effect: math.Log1p(effects[i]), blind: blind}
			m.noise, m.canary = watched[kind].machine(r)
			judgeBlocks(r, m, &tallies[i], Looks(4, 15))
			tallies[i].runs += m.runs
		}
	}
	return tallies
}

// The second table shows that covariates make no false verdicts if there is nothing to remove, and how much they save
// otherwise.
func TestRatesWithCovariates(t *testing.T) {
	needtest.NoRace(t)
	rows := rowsOf(t, covariates)
	if len(rows) != len(watched) {
		t.Fatalf("%d rows of %d", len(rows), len(watched))
	}
	for i, columns := range rows {
		if len(columns) != 3 || columns[0] != watched[i].says {
			t.Fatalf("not a row of %q: %s", watched[i].says, columns)
		}
		const few = 250
		seen, figures := watch(i, false, few), strings.Split(columns[2], " · ")
		agree(t, columns[0]+", false verdicts", seen[0].better+seen[0].worse, few, figures[0])
		agree(t, columns[0]+", wins", seen[1].better, few, figures[2])
		if wrong, _ := strconv.ParseFloat(figures[0], 64); wrong > 5.2 {
			t.Errorf("%s: %v %% false verdicts", columns[0], wrong)
		}
	}
}

// write simulates all of both tables, with as many goroutines as there are rows.
func write(t *testing.T, trials int) {
	rows, known := make([]string, len(noises)), make([]string, len(watched))
	var all sync.WaitGroup
	for i, n := range noises {
		all.Go(func() {
			cells := []string{n.name, n.says}
			for j := range methods {
				cells = append(cells, cell(fare(i, j, trials), j < 2))
			}
			rows[i] = "| " + strings.Join(cells, " | ") + " |\n"
		})
	}
	for i, w := range watched {
		all.Go(func() {
			const more = 5 // what is to be seen are tenths of a per cent
			known[i] = fmt.Sprintf("| %s | %s | %s |\n", w.says, cell(watch(i, true, more*trials), true),
				cell(watch(i, false, more*trials), true))
		})
	}
	all.Wait()
	head := []string{"machine", "what varies, beside 1.4 % a run"}
	for _, m := range methods {
		head = append(head, m.name)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []struct {
		table *regexp.Regexp
		name  string
		head  []string
		rows  []string
	}{
		{table, "rates", head, rows},
		{covariates, "covariates", []string{"machine", "not removed", "as it is"}, known},
	} {
		lines := "| " + strings.Join(made.head, " | ") + " |\n|" + strings.Repeat(" --- |", len(made.head)) + "\n" +
			strings.Join(made.rows, "")
		text = made.table.ReplaceAllLiteral(text,
			[]byte("<!-- "+made.name+": made by bench/verdicts -->\n"+lines+"<!-- end -->"))
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
