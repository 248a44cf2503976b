package page

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// picture builds an SVG. It escapes foreign text. Elements have classes instead of style attributes, which the page's
// content security policy would refuse.
type picture struct{ strings.Builder }

// begin takes a role: img, or group for a picture with links, which screen readers would not find in an img.
func (s *picture) begin(width, height float64, role, label string) {
	fmt.Fprintf(s, `<svg viewBox="0 0 %.0f %.0f" role="%s" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`,
		width, height, role, template.HTMLEscapeString(label))
}

func (s *picture) end() template.HTML {
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

func (s *picture) text(x, y float64, class, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class,
		template.HTMLEscapeString(printable.Line(text)))
}

func (s *picture) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

func (s *picture) rect(x, y, width, height float64, class string) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`, x, y, math.Max(0, width), height,
		class)
}

// ledgerBar draws the outcomes as one bar, whose parts add up to the declared candidates.
func ledgerBar(counts []outcomeCount, universe int) template.HTML {
	if universe == 0 {
		return ""
	}
	var s picture
	const width, height = 1000.0, 34.0
	s.begin(width, height, "img", fmt.Sprintf("outcomes of %d candidates", universe))
	x := 0.0
	for _, c := range counts {
		part := width * float64(c.Count) / float64(universe)
		s.rect(x, 0, part-1, height, "o-"+string(c.Outcome))
		if part > 40 {
			s.text(x+6, 22, "on", fmt.Sprintf("%s %d", sign(c.Outcome), c.Count))
		}
		x += part
	}
	// On a narrow screen the bar is as high as a finger, and its parts keep their proportions.
	return template.HTML(strings.Replace(string(s.end()), "<svg ", `<svg preserveAspectRatio="none" `, 1))
}

// forest draws effects with their intervals, the largest first, over a band for the margin. The axis is logarithmic,
// so that half and double are equally far from no effect.
func forest(rows []stats.Comparison, ids []string) template.HTML {
	if len(rows) == 0 {
		return ""
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[b].Effect, rows[a].Effect) })
	low, high, margin := -0.02, 0.02, 0.0
	for _, c := range rows {
		low, high, margin = math.Min(low, logRatio(c.Low)), math.Max(high, logRatio(c.High)), math.Max(margin, c.Tie)
	}
	const line, top, width = 22.0, 26.0, 1000.0
	room := func(text string) float64 { return 7.5 * float64(printable.Cells(text)) } // an upper limit for all fonts
	labels, names := 0.0, make([]string, len(rows))
	figures, effects := 0.0, make([]string, len(rows))
	for i, c := range rows {
		names[i] = document.Shorten(sign(c.Outcome)+" "+c.Candidate+" "+c.Metric, 64)
		effects[i] = c.EffectText() + " [" + c.IntervalText() + "]"
		labels, figures = math.Max(labels, room(names[i])), math.Max(figures, room(effects[i]))
	}
	height := top + line*float64(len(rows)) + 8
	place := func(v float64) float64 { return labels + (width-labels-figures)*(v-low)/(high-low) }
	var s picture
	s.begin(width, height, "group", fmt.Sprintf("effects of %d candidates with their intervals", len(rows)))
	s.rect(place(-math.Log1p(margin)), top-6, place(math.Log1p(margin))-place(-math.Log1p(margin)), height-top,
		"margin")
	const labelled = 56.0 // width of a label
	free := 0.0
	for _, tick := range ticks(low, high) {
		at := place(logRatio(tick))
		s.line(at, top-6, at, height-8, "grid")
		if at >= free {
			s.text(at, 14, "tick", tickText(tick))
			free = at + labelled
		}
	}
	s.line(place(0), top-6, place(0), height-8, "zero")
	for at, i := range order {
		c := rows[i]
		y := top + line*float64(at) + line/2
		fmt.Fprintf(&s, `<a href="#%s" tabindex="-1">`, ids[i]) // for keyboards, the table below has the same links
		s.text(4, y+4, "label", names[i])
		s.line(place(logRatio(c.Low)), y, place(logRatio(c.High)), y, "bar o-"+string(c.Outcome))
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="4.5" class="o-%s"/>`, place(logRatio(c.Effect)), y, c.Outcome)
		s.text(width-figures+8, y+4, "label", effects[i])
		s.WriteString("</a>")
	}
	return s.end()
}

// logRatio returns an effect as the logarithm of the ratio; ratios below 1 % are drawn at 1 %.
func logRatio(effect float64) float64 { return math.Log(math.Max(1+effect, 0.01)) }

// ticks returns at most seven round effects between two log ratios.
func ticks(low, high float64) []float64 {
	for _, step := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100} {
		var all []float64
		for k := math.Ceil(math.Expm1(low) / step); k*step <= math.Expm1(high) && len(all) < 8; k++ {
			all = append(all, k*step)
		}
		if len(all) <= 7 {
			return all
		}
	}
	return nil
}

// tickText formats a round effect.
func tickText(effect float64) string {
	if effect == 0 {
		return "0 %" // not -0
	}
	return strings.Replace(fmt.Sprintf("%+.4g %%", 100*effect), "-", "−", 1)
}

// samplePlot shows the samples of one benchmark and metric of a commit, block by block.
type samplePlot struct {
	Title    string
	Variants []string
	Picture  template.HTML
}

// maxDots limits the dots of one picture: an eye sees no more.
const maxDots = 2000

// samplePlots draws the samples of every commit. A line joins the dots of a block; a dot that does not count is
// hollow. The number in a dot's title is its position in the block's order.
func samplePlots(p *document.Counted) map[string][]samplePlot {
	type key struct{ commit, benchmark, metric string }
	groups := map[key][]document.Measurement{}
	var keys []key
	primary := map[string]bool{}
	for _, c := range p.Comparisons {
		primary[c.Benchmark+"\x00"+c.Metric] = primary[c.Benchmark+"\x00"+c.Metric] || c.Primary
	}
	for _, m := range p.Measurements {
		if !primary[m.Benchmark+"\x00"+m.Metric] {
			continue
		}
		k := key{m.Commit, m.Benchmark, m.Metric}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], m)
	}
	plots := map[string][]samplePlot{}
	for _, k := range keys {
		list := groups[k]
		plot := samplePlot{Title: fmt.Sprintf("%s, %s in %s", k.benchmark, k.metric, list[0].Unit)}
		for _, m := range list {
			if v := variantOf(m.Candidate); !slices.Contains(plot.Variants, v) {
				plot.Variants = append(plot.Variants, v)
			}
		}
		slices.Sort(plot.Variants)
		plot.Picture = drawSamples(list[:min(len(list), maxDots)], plot.Variants, plot.Title)
		plots[k.commit] = append(plots[k.commit], plot)
	}
	return plots
}

func drawSamples(list []document.Measurement, variants []string, title string) template.HTML {
	first, last := list[0].Block, list[0].Block
	low, high := list[0].Value, list[0].Value
	for _, m := range list {
		first, last = min(first, m.Block), max(last, m.Block)
		low, high = math.Min(low, m.Value), math.Max(high, m.Value)
	}
	if low == high {
		low, high = low-1, high+1
	}
	const width, height, left, right, top, bottom = 640.0, 220.0, 80.0, 16.0, 12.0, 28.0
	x := func(block int) float64 {
		return left + (width-left-right)*(float64(block-first)+0.5)/float64(last-first+1)
	}
	y := func(v float64) float64 { return top + (height-top-bottom)*(high-v)/(high-low) }
	var s picture
	s.begin(width, height, "img", title)
	for _, v := range []float64{low, (low + high) / 2, high} {
		s.line(left, y(v), width-right, y(v), "grid")
		s.text(left-6, y(v)+4, "tick end", document.Number(v))
	}
	byBlock := map[int][]document.Measurement{}
	for _, m := range list {
		byBlock[m.Block] = append(byBlock[m.Block], m)
	}
	for block := first; block <= last && block-first < maxDots; block++ {
		s.text(x(block), height-8, "tick", fmt.Sprint(block))
		if members := byBlock[block]; len(members) > 1 {
			lowest, highest := members[0].Value, members[0].Value
			for _, m := range members {
				lowest, highest = math.Min(lowest, m.Value), math.Max(highest, m.Value)
			}
			s.line(x(block), y(lowest), x(block), y(highest), "pair")
		}
	}
	for _, m := range list {
		variant := slices.Index(variants, variantOf(m.Candidate))
		class := fmt.Sprintf("v%d", variant%8)
		text := fmt.Sprintf("%s, block %d, order %d: %s %s", variantOf(m.Candidate), m.Block, m.Order,
			document.Number(m.Value),
			m.Unit)
		if m.Phase != "" {
			class, text = class+" aside", text+", "+m.Phase
		}
		dx := (float64(variant) - float64(len(variants)-1)/2) * 9
		fmt.Fprintf(&s, `<g class="%s"><title>%s</title>%s</g>`, class, template.HTMLEscapeString(printable.Line(text)),
			glyph(variant, x(m.Block)+dx, y(m.Value)))
	}
	return s.end()
}

// glyph returns the dot of a variant. Shapes differ, so that colour is not the only sign.
func glyph(variant int, x, y float64) string {
	switch variant % 4 {
	case 0:
		return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	case 1:
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="7.5" height="7.5"/>`, x-3.75, y-3.75)
	case 2:
		return fmt.Sprintf(`<path d="M%.1f %.1fl5 8.5h-10z"/>`, x, y-5)
	}
	return fmt.Sprintf(`<path d="M%.1f %.1fl5 5-5 5-5-5z"/>`, x, y-5)
}
