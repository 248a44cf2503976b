// Package requirement compares requirements of images and models with devices: drivers, and memory for weights.
package requirement

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var majorMinor = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?`)

// Disable names the variable of an image or a container that switches off the requirements of the image.
const Disable = "NVIDIA_DISABLE_REQUIRE"

// Disabled reports whether a value of that variable switches them off.
func Disabled(value string) bool {
	off, err := strconv.ParseBool(value)
	return err == nil && off
}

// ConditionsOf returns the conditions in the variables of an image. All of them must hold. It reads the variables as
// NVIDIA's container toolkit does: CUDA_VERSION alone, as old images have it, is a condition, too.
func ConditionsOf(env map[string]string) (all []string) {
	if Disabled(env[Disable]) {
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

// truth says whether a condition holds. "a and b" has the smaller truth of both, "a or b" the greater one.
type truth int

const (
	Fails truth = iota
	open        // it depends on something unknown
	Holds
)

// Meets evaluates a condition: alternatives separated by blanks, each a list of terms separated by commas.
func (d *Device) Meets(condition string) (truth, error) {
	holds, empty := Fails, true
	for alternative := range strings.FieldsSeq(condition) {
		all := Holds
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
		holds = max(holds, all)
	}
	if empty {
		return Holds, nil
	}
	return holds, nil
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
		has = map[string]string{"cuda": d.NewestCUDA(), "driver": d.Driver}[name]
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
		return Holds, nil
	}
	return Fails, nil
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

// NewestCUDA returns the newest CUDA that the driver serves; "" if it is not known.
func (d *Device) NewestCUDA() (version string) {
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
