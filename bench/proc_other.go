//go:build !linux

package main

import "time"

func processorTime(int) (time.Duration, error) { return 0, errNotHere }

func peakMemory(int) (int64, error) { return 0, errNotHere }

func load() string { return "load unknown" }
