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
	fieldClientIP
	fieldRemoteIP
	fieldRemoteAddr // of Caddy before 2.5
	fieldUserID
	fieldStatus
	fieldUserAgent
	fieldCookie
	fieldAuthorization
	fieldContentType
	fieldCacheControl
	fieldRobotsTag
	fieldETag
	fieldLastModified

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
		case "client_ip":
			return fieldClientIP
		case "remote_ip":
			return fieldRemoteIP
		case "remote_addr":
			return fieldRemoteAddr
		case "headers":
			return inRequestHeaders
		}
	case inRequestHeaders:
		switch string(key) {
		case "User-Agent":
			return fieldUserAgent
		case "Cookie":
			return fieldCookie
		case "Authorization":
			return fieldAuthorization
		}
	case inResponseHeaders:
		switch string(key) {
		case "Content-Type":
			return fieldContentType
		case "Cache-Control":
			return fieldCacheControl
		case "X-Robots-Tag":
			return fieldRobotsTag
		case "Etag":
			return fieldETag
		case "Last-Modified":
			return fieldLastModified
		}
	}
	return noField
}
