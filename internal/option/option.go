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
func (o Option) Set(args []string) (err error) {
	value := strings.Join(args, " ")
	to := reflect.Indirect(reflect.ValueOf(o.To))
	isOne := to.IsValid() && to.Kind() != reflect.Slice
	switch {
	case o.Hint != "":
		return fmt.Errorf("%s does not belong here: %s", o.Name, o.Hint)
	case o.Usage == "" && len(args) > 0 && o.Block == nil:
		return fmt.Errorf("unexpected argument '%s': %s alone turns it on; without it, it is off", args[0], o.Name)
	case o.Usage == "" && len(args) > 0:
		return fmt.Errorf("unexpected argument '%s': the options of %s belong in a block", args[0], o.Name)
	case isOne && !to.IsZero():
		return fmt.Errorf("%s is given twice", o.Name)
	case len(args) == 0 && (o.Usage == "" || o.Usage[0] == '['):
		if flag, ok := o.To.(*bool); ok && o.Usage == "" {
			*flag = true
		}
		return nil
	case len(args) == 0, len(args) > 1 && isOne:
		return fmt.Errorf("wrong number of values: use '%s %s'", o.Name, o.Usage)
	case slices.Contains(args, ""):
		return fmt.Errorf("%s has an empty value", o.Name)
	}
	switch to := o.To.(type) {
	case nil:
		return nil
	case *string:
		*to = value
	case *[]string:
		*to = append(*to, args...)
	case *bool:
		*to = value == "off"
	case **bool:
		err = json.Unmarshal([]byte(map[string]string{"on": "true", "off": "false"}[value]), to)
	case *float64:
		*to, err = ParseRate(value)
	case json.Unmarshaler:
		err = to.UnmarshalJSON([]byte(strconv.Quote(value)))
	default:
		err = json.Unmarshal([]byte(value), to)
	}
	if err != nil || to.IsZero() { // which would be the default
		return fmt.Errorf("%s '%s': use '%s %s'", o.Name, value, o.Name, o.Usage)
	}
	return nil
}

// ParseRate reads a rate above 0, such as 0.5/s, in events per second.
func ParseRate(value string) (float64, error) {
	number, isRate := strings.CutSuffix(value, "/s")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !isRate || !(n > 0) {
		return 0, errors.New("use a number per second, such as 2/s or 0.5/s")
	}
	return n, nil
}

// Options are those of one block.
type Options []Option

// Find returns the option with a name. If there is none, the error suggests the nearest name, or lists all.
func (all Options) Find(name string) (Option, error) {
	suggest := new(cobra.Command)
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
