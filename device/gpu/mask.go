package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mask is the caller's choice of GPUs. The zero Mask hides nothing.
type Mask struct {
	Visible *string // CUDA_VISIBLE_DEVICES: indices, UUIDs or prefixes of them, separated by commas; nil: not set
	Slurm   string  // SLURM_STEP_GPUS or SLURM_JOB_GPUS: indices on the host; used if Visible is nil
}

// apply returns the devices of the mask, in its order. As with CUDA, the first name that matches no device ends the
// list: apply then returns an error together with the devices before it.
func (m Mask) apply(all []Device) ([]Device, error) {
	switch {
	case m.Visible != nil:
		return named("CUDA_VISIBLE_DEVICES", *m.Visible, all)
	case m.Slurm != "":
		names := strings.Split(m.Slurm, ",")
		if len(names) == len(all) { // Slurm has already hidden the others, and its numbers are the host's
			return all, nil
		}
		return named("Slurm's devices", m.Slurm, all)
	}
	return all, nil
}

// Only returns the devices in a list of indices and UUIDs, such as the value of -devices.
func Only(list string, all []Device) ([]Device, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("-devices %s: this machine has none", list)
	}
	return named("-devices", list, all)
}

func named(what, list string, all []Device) ([]Device, error) {
	var chosen []Device
	if strings.TrimSpace(list) == "" {
		return nil, fmt.Errorf("%s is empty and hides all devices", what)
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "-1" || strings.EqualFold(name, "NoDevFiles") || name == "none" || name == "void" {
			break
		}
		d, err := lookUp(name, all)
		if err != nil {
			return chosen, fmt.Errorf("%s names %q: %w; what comes after it does not count", what, name, err)
		}
		if slices.ContainsFunc(chosen, func(c Device) bool { return c.UUID == d.UUID }) {
			return nil, fmt.Errorf("%s names %q twice, which hides all devices", what, name)
		}
		chosen = append(chosen, d)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s (%q) hides all devices", what, list)
	}
	return chosen, nil
}

// lookUp returns a device by its index or a prefix of its UUID.
func lookUp(name string, all []Device) (Device, error) {
	if index, err := strconv.Atoi(name); err == nil {
		i := slices.IndexFunc(all, func(d Device) bool { return d.Index == index && d.Parent == "" })
		if i < 0 {
			return Device{}, fmt.Errorf("there is no device of this index")
		}
		return all[i], nil
	}
	var found []Device
	for _, d := range all {
		if strings.HasPrefix(strings.ToUpper(d.UUID), strings.ToUpper(name)) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return Device{}, fmt.Errorf("there is no such device")
	case 1:
		return found[0], nil
	}
	return Device{}, fmt.Errorf("%d devices begin so", len(found))
}
