package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// drivers compares the drivers of the devices with what images require of them.
func (c *checker) drivers() {
	for i := range c.in.Images {
		m := &c.in.Images[i]
		c.commit, c.of, c.place = commitOf(m.Candidate), m.Candidate, m.Place
		conditions, by := conditionsOf(m.Requires), ""
		if found := cudaTag.FindStringSubmatch(m.Name); len(m.Requires) == 0 && found != nil {
			conditions, by = []string{"cuda>=" + found[1] + ".0"}, ", by its name,"
		}
		for _, condition := range conditions {
			c.driver(m, m.Name+by, condition)
		}
	}
}

// driver compares the devices that an image is used with, by one condition, and reports the worst case.
func (c *checker) driver(m *ImageState, image, condition string) {
	var devices []Device
	for _, machine := range m.Machines {
		devices = append(devices, c.in.Devices[machine]...)
	}
	worst, worstOf := holds, -1
	for i := range devices {
		d := &devices[i]
		if d.Driver == "" && d.CUDA == "" {
			continue
		}
		is, err := d.meets(condition)
		if err != nil {
			c.add(Driver, Unverified,
				fmt.Sprintf("%s requires %.200q, which is not understood: %v", image, condition, err),
				"correct the variables of the image, or set NVIDIA_DISABLE_REQUIRE=1 in it")
			return
		}
		if is < worst || worstOf < 0 {
			worst, worstOf = is, i
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
	if cuda := d.cuda(); cuda != "" {
		says += " with CUDA " + cuda
	}
	switch worst {
	case holds:
		c.add(Driver, OK, says, "")
	case fails:
		c.add(Driver, Warn, says, "update the driver, or take an image with an older CUDA")
	default:
		c.add(Driver, Unverified, says+": that does not tell whether the image runs there", "")
	}
}

// cudaTag finds the major version of CUDA in the name of an image. Every driver of a major version serves all of its
// minor versions.
var cudaTag = regexp.MustCompile(`cuda[:_-]?(1[1-9])[.-]`)

var majorMinor = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?`)

// conditionsOf are the conditions that variables of an image make, all of which must hold. NVIDIA's container toolkit
// reads the variables in the same way: CUDA_VERSION alone is that of old images, and is a condition, too.
func conditionsOf(env map[string]string) (all []string) {
	if off, err := strconv.ParseBool(env["NVIDIA_DISABLE_REQUIRE"]); err == nil && off {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, "NVIDIA_REQUIRE_") && !strings.HasPrefix(name, "NVIDIA_REQUIRE_JETPACK") &&
			env[name] != "" {
			all = append(all, env[name])
		}
	}
	if version := majorMinor.FindString(env["CUDA_VERSION"]); version != "" && env["NVIDIA_REQUIRE_CUDA"] == "" {
		all = append(all, "cuda>="+version)
	}
	return all
}

// truth is whether a condition holds. The truth of "a and b" is the smaller one, that of "a or b" the greater one.
type truth int

const (
	fails truth = iota
	open        // it hangs on something that is not known
	holds
)

// meets evaluates a condition: alternatives with blanks between them, each a list of terms with commas between them.
func (d *Device) meets(condition string) (truth, error) {
	is, empty := fails, true
	for alternative := range strings.FieldsSeq(condition) {
		all := holds
		for term := range strings.SplitSeq(alternative, ",") {
			if term == "" {
				continue
			}
			one, err := d.term(term)
			if err != nil {
				return open, err
			}
			all, empty = min(all, one), false
		}
		is = max(is, all)
	}
	if empty {
		return holds, nil
	}
	return is, nil
}

var term = regexp.MustCompile(`^([a-zA-Z]+)(=|!=|<|<=|>|>=)([^<>=!]+)$`)

// term evaluates one term, such as driver>=470.
func (d *Device) term(text string) (truth, error) {
	part := term.FindStringSubmatch(text)
	if part == nil {
		return open, fmt.Errorf("%.100q is no comparison", text)
	}
	has, order := "", 0
	switch name := strings.ToLower(part[1]); name {
	case "cuda", "driver", "arch":
		has = map[string]string{"cuda": d.cuda(), "driver": d.Driver}[name]
		wants, err := parseVersion(part[3])
		if err != nil {
			return open, err
		}
		mine, err := parseVersion(has)
		if err != nil {
			return open, nil
		}
		order = slices.Compare(mine, wants)
	case "brand":
		if has = d.Brand; !strings.EqualFold(has, part[3]) {
			order = 1
		}
		if part[2] != "=" && part[2] != "!=" {
			return open, fmt.Errorf("%.100q: brands have no order", text)
		}
	default:
		return open, fmt.Errorf("%.100q compares neither cuda, driver, arch nor brand", text)
	}
	if has == "" {
		return open, nil
	}
	if map[string]bool{
		"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0,
	}[part[2]] {
		return holds, nil
	}
	return fails, nil
}

// parseVersion returns the numbers of a version without the zeros at its end: 12.0 is 12.
func parseVersion(text string) (numbers []int, err error) {
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%.100q is no version", text)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) > 8 {
		return nil, errors.New("a version has too many parts")
	}
	for len(numbers) > 0 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	return numbers, nil
}

// cuda is the newest CUDA that the driver serves; empty: not known.
func (d *Device) cuda() (version string) {
	if d.CUDA != "" {
		return d.CUDA
	}
	branch, err := parseVersion(d.Driver)
	if err != nil || len(branch) == 0 {
		return ""
	}
	for _, b := range branches {
		if branch[0] >= b.driver {
			version = b.cuda
		}
	}
	return version
}

// branches are the branches of NVIDIA's driver, with the newest CUDA that each serves, by the release notes of CUDA.
var branches = []struct {
	driver int
	cuda   string
}{
	{384, "9.0"}, {390, "9.1"}, {396, "9.2"}, {410, "10.0"}, {418, "10.1"}, {440, "10.2"}, {450, "11.0"}, {455, "11.1"},
	{460, "11.2"}, {465, "11.3"}, {470, "11.4"}, {495, "11.5"}, {510, "11.6"}, {515, "11.7"}, {520, "11.8"},
	{525, "12.0"}, {530, "12.1"}, {535, "12.2"}, {545, "12.3"}, {550, "12.4"}, {555, "12.5"}, {560, "12.6"},
	{565, "12.7"}, {570, "12.8"}, {575, "12.9"}, {580, "13.0"}, {590, "13.1"},
}
