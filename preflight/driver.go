package preflight

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/preflight/requirement"
)

// drivers compares the drivers of the devices with the requirements of images.
func (c *checker) drivers() {
	for i := range c.in.Images {
		m := &c.in.Images[i]
		c.commit, c.candidate, c.place = commitOf(m.Candidate), m.Candidate, m.Place
		conditions, by := requirement.ConditionsOf(m.Requires), ""
		if found := cudaTag.FindStringSubmatch(m.Name); len(m.Requires) == 0 && found != nil {
			conditions, by = []string{"cuda>=" + found[1] + ".0"}, ", by its name,"
		}
		for _, condition := range conditions {
			c.driver(m, m.Name+by, condition)
		}
	}
}

// driver compares the devices of an image's machines with one condition, and reports the worst case.
func (c *checker) driver(m *ImageState, image, condition string) {
	var devices []requirement.Device
	for _, machine := range m.Machines {
		devices = append(devices, c.in.Devices[machine]...)
	}
	worst, worstOf := requirement.Holds, -1
	for i := range devices {
		d := &devices[i]
		if d.Driver == "" && d.CUDA == "" {
			continue
		}
		holds, err := d.Meets(condition)
		if err != nil {
			c.add(Driver, Unverified,
				fmt.Sprintf("%s requires %.200q, which is not understood: %v", image, condition, err),
				"correct the variables of the image, or set NVIDIA_DISABLE_REQUIRE=1 in it")
			return
		}
		if holds < worst || worstOf < 0 {
			worst, worstOf = holds, i
		}
	}
	if worstOf < 0 {
		return
	}
	d := devices[worstOf]
	first, others, _ := strings.Cut(strings.TrimSpace(condition), " ")
	if n := len(strings.Fields(others)); n > 0 {
		first = fmt.Sprintf("%.200q or one of %d alternatives", first, n)
	} else {
		first = fmt.Sprintf("%.200q", first)
	}
	says := fmt.Sprintf("%s requires %s; %s has driver %s", image, first, d.Name, cmp.Or(d.Driver, "?"))
	if cuda := d.NewestCUDA(); cuda != "" {
		says += " with CUDA " + cuda
	}
	switch worst {
	case requirement.Holds:
		c.add(Driver, OK, says, "")
	case requirement.Fails:
		c.add(Driver, Warn, says, "update the driver, or take an image with an older CUDA")
	default:
		c.add(Driver, Unverified, says+": that does not tell whether the image runs there", "")
	}
}

// cudaTag finds the major version of CUDA in the name of an image. A driver serves all minor versions of its major
// version.
var cudaTag = regexp.MustCompile(`cuda[:_-]?(1[1-9])[.-]`)
