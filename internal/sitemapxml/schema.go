// Package sitemapxml writes sitemap documents.
package sitemapxml

// Schema is the XML schema that a document follows. The zero value is [Schema09].
type Schema uint8

const (
	// Schema09 is that of https://www.sitemaps.org/protocol.html.
	Schema09 Schema = iota

	// Schema084 is Google's first, which some engines and appliances still want.
	Schema084
)

var (
	schemaNames = [...]string{Schema09: "0.9", Schema084: "0.84"}
	namespaces  = [...]string{
		Schema09:  "http://www.sitemaps.org/schemas/sitemap/0.9",
		Schema084: "http://www.google.com/schemas/sitemap/0.84",
	}
)

// String is the schema's version, "0.9" or "0.84".
func (s Schema) String() string { return schemaNames[s] }

// Namespace is the XML namespace of the schema's documents.
func (s Schema) Namespace() string { return namespaces[s] }

// extensible reports whether the schema's entries may have elements of other
// namespaces. In 0.84 they are an xsd:all of its own four.
func (s Schema) extensible() bool { return s == Schema09 }
