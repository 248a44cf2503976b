package group

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// fewBytes is the size up to which the samples of a benchmark need no remark: 1 GiB.
const fewBytes = 1 << 30

// Remarks returns sentences about the first sample of a benchmark, for people: its primary metric has no better
// direction and so no verdict, or the samples of all planned blocks will take much room. dir has the raw output of the
// sample, and members is the number of samples of a block. The file can be corrected at once; the first needs no new
// measurement.
func Remarks(b *hclspec.Benchmark, primary metrics.Sample, dir string, members int) (texts []string) {
	name := b.Address.Kind + "." + b.Address.Name
	if _, known := sample.Better(b.Metrics, primary.Metric, primary.Unit); !known {
		texts = append(texts, fmt.Sprintf("%s: nothing says whether a higher or a lower %s is better, so there "+
			"will be no verdict: say better = \"higher\" or \"lower\" in its metric block. What is measured "+
			"meanwhile is kept.", name, primary.Metric))
	}
	var bytes int64
	_ = fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error { // lost files take no room
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	blocks := int64(b.Design.BurnIn + b.Design.Max)
	if all := bytes * blocks * int64(members); all > fewBytes {
		texts = append(texts, fmt.Sprintf("%s: a sample keeps %s of output, and the %d samples of up to %d blocks "+
			"keep up to %s: let the command remove the files of $OUT in which nothing is read.", name,
			units.BytesSize(float64(bytes)), blocks*int64(members), blocks, units.BytesSize(float64(all))))
	}
	return texts
}
