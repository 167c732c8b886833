//go:build !linux

package files

import "errors"

func newNotifier() (notifier, error) {
	return nil, errors.New("only Linux tells of all changes")
}
