package accesslog

// field is what a value in Caddy's JSON is read for.
type field uint8

const (
	noField field = iota
	fieldTime
	fieldLogger
	fieldMethod
	fieldHost
	fieldURI
	fieldUserID
	fieldStatus
	fieldUserAgent
	fieldAuthorization
	fieldContentType
	fieldRobotsTag

	// Objects with fields in them.
	inLine
	inRequest
	inRequestHeaders
	inResponseHeaders
)

// fieldOf is what the value of a key is read for in one of the objects.
func fieldOf(object field, key []byte) field {
	switch object {
	case inLine:
		switch string(key) {
		case "ts":
			return fieldTime
		case "logger":
			return fieldLogger
		case "request":
			return inRequest
		case "user_id":
			return fieldUserID
		case "status":
			return fieldStatus
		case "resp_headers":
			return inResponseHeaders
		}
	case inRequest:
		switch string(key) {
		case "method":
			return fieldMethod
		case "host":
			return fieldHost
		case "uri":
			return fieldURI
		case "headers":
			return inRequestHeaders
		}
	case inRequestHeaders:
		switch string(key) {
		case "User-Agent":
			return fieldUserAgent
		case "Authorization":
			return fieldAuthorization
		}
	case inResponseHeaders:
		switch string(key) {
		case "Content-Type":
			return fieldContentType
		case "X-Robots-Tag":
			return fieldRobotsTag
		}
	}
	return noField
}
