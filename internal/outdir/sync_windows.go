package outdir

// syncFolder does nothing: a folder cannot be flushed there.
func syncFolder(string) error { return nil }
