package harness

// What tests wait for in the log, which stands here alone: see [Server.Logged].
const (
	Refreshed      = `"msg":"sitemap refreshed` // whether anything has changed or not
	Unchanged      = Refreshed + ", nothing changed"
	GatheringFails = "gathering pages failed"
	HeldBack       = "sitemap change held back until later refreshes confirm it"
	NoPage         = "no page to list"
	LogRead        = "access log read"
	NotStored      = "cannot store the records"
	NotWatched     = "not all files are watched"
)
