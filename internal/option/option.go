// Package option reads the options of a Caddyfile block: [Options] is a table of names, usages and targets. A
// [Checker] validates settings wherever they come from.
package option

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Option is one line of a block: a name, arguments and perhaps a block of further options.
type Option struct {
	Name  string
	Usage string // its arguments, such as "<path> [<name>]"; "": it takes none
	Hint  string // where it belongs instead; "": it belongs here

	// To points to what the arguments set: a string, a list of strings, a number, a *bool (on or off), a bool (true
	// for off, or without a Usage), a float64 (see [ParseRate]), or a [json.Unmarshaler], such as a duration. Nil:
	// only Block takes the arguments.
	To any

	// Block returns the options of the block that follows these arguments. Nil: it has no block.
	Block func(args []string) Options
}

// Set sets what To points to. Only lists may be given several times, so that a snippet and the site that imports it
// can both add to them.
func (o Option) Set(args []string) error {
	if err := o.refuse(args); err != nil {
		return err
	}
	if len(args) == 0 {
		flag, isFlag := o.To.(*bool)
		if isFlag && o.Usage == "" {
			*flag = true
		}
		return nil // optional arguments that are missing leave the default
	}
	if o.To == nil {
		return nil
	}
	value := strings.Join(args, " ")
	err := o.assign(value, args)
	// A zero value would be the default, which JSON cannot tell from one that is not set.
	isZero := reflect.Indirect(reflect.ValueOf(o.To)).IsZero()
	if err != nil || isZero {
		return fmt.Errorf("%s '%s': use '%s %s'", o.Name, value, o.Name, o.Usage)
	}
	return nil
}

// refuse returns what is wrong with the place or the number of the arguments.
func (o Option) refuse(args []string) error {
	if o.Hint != "" {
		return fmt.Errorf("%s does not belong here: %s", o.Name, o.Hint)
	}
	if o.Usage == "" && len(args) > 0 {
		if o.Block == nil {
			return fmt.Errorf("unexpected argument '%s': %s alone turns it on; without it, it is off", args[0], o.Name)
		}
		return fmt.Errorf("unexpected argument '%s': the options of %s belong in a block", args[0], o.Name)
	}
	to := reflect.Indirect(reflect.ValueOf(o.To))
	isOne := to.IsValid() && to.Kind() != reflect.Slice
	if isOne && !to.IsZero() {
		return fmt.Errorf("%s is given twice", o.Name)
	}
	isOptional := o.Usage == "" || strings.HasPrefix(o.Usage, "[")
	isMissing := len(args) == 0 && !isOptional
	if isMissing || isOne && len(args) > 1 {
		return fmt.Errorf("wrong number of values: use '%s %s'", o.Name, o.Usage)
	}
	if slices.Contains(args, "") {
		return fmt.Errorf("%s has an empty value", o.Name)
	}
	return nil
}

// assign reads the arguments into what To points to; value is all of them. The error need not say what was expected:
// the usage does.
func (o Option) assign(value string, args []string) (err error) {
	switch to := o.To.(type) {
	case *string:
		*to = value
	case *[]string:
		*to = append(*to, args...)
	case *bool:
		*to = value == "off"
	case **bool:
		*to, err = parseSwitch(value)
	case *float64:
		*to, err = ParseRate(value)
	case json.Unmarshaler:
		err = to.UnmarshalJSON([]byte(strconv.Quote(value)))
	default:
		err = json.Unmarshal([]byte(value), to)
	}
	return err
}

// parseSwitch reads what turns something on or off; nil: neither.
func parseSwitch(value string) (*bool, error) {
	isOn := value == "on"
	if !isOn && value != "off" {
		return nil, errors.New("use on or off")
	}
	return &isOn, nil
}

// ParseRate reads a rate above 0, such as 0.5/s, in events per second.
func ParseRate(value string) (float64, error) {
	number, isRate := strings.CutSuffix(value, "/s")
	n, err := strconv.ParseFloat(number, 64)
	isPositive := n > 0 // which NaN is not, either
	if err != nil || !isRate || !isPositive {
		return 0, errors.New("use a number per second, such as 2/s or 0.5/s")
	}
	return n, nil
}

// Options are those of one block.
type Options []Option

// Find returns the option with a name. If there is none, the error suggests the nearest name, or lists all.
func (all Options) Find(name string) (Option, error) {
	suggest := new(cobra.Command) // its suggestions are those of the command line: one way to find the nearest name
	var names []string
	for _, o := range all {
		if o.Name == name {
			return o, nil
		}
		if o.Hint == "" {
			names = append(names, o.Name)
			suggest.AddCommand(&cobra.Command{Use: o.Name, Run: func(*cobra.Command, []string) {}})
		}
	}
	// In a word of three letters one may be wrong, in one of seven three.
	for ; suggest.SuggestionsMinimumDistance <= (len(name)+2)/3; suggest.SuggestionsMinimumDistance++ {
		if near := suggest.SuggestionsFor(name); len(near) > 0 {
			return Option{}, fmt.Errorf("unrecognized subdirective '%s'; did you mean '%s'?", name, near[0])
		}
	}
	return Option{}, fmt.Errorf("unrecognized subdirective '%s': use %s", name, strings.Join(names, ", "))
}
