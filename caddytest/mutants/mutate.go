package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// A mutant is a file of the product with one thing wrong.
type mutant struct {
	path       string
	line       int
	column     int
	function   *function // nil: it is in none
	kind       string
	start, end int // bytes of the source that the replacement stands for
	with       string
	source     []byte
}

// A function is what is known of the innermost function around a mutant.
type function struct {
	results     *ast.FieldList
	first, last int // lines
}

// mutated is the file as the mutant has it.
func (m mutant) mutated() []byte {
	return bytes.Join([][]byte{m.source[:m.start], []byte(m.with), m.source[m.end:]}, nil)
}

// place is where the mutant is, without the folder.
func (m mutant) place() string { return fmt.Sprintf("%s:%d", filepath.Base(m.path), m.line) }

// diff shows the lines that differ, as they are and as the mutant has them.
func (m mutant) diff() string {
	first := bytes.LastIndexByte(m.source[:m.start], '\n') + 1
	last := len(m.source)
	if length := bytes.IndexByte(m.source[m.end:], '\n'); length >= 0 {
		last = m.end + length
	}
	as := string(m.source[first:last])
	is := string(m.source[first:m.start]) + m.with + string(m.source[m.end:last])
	return "\t-" + strings.ReplaceAll(as, "\n", "\n\t-") + "\n\t+" + strings.ReplaceAll(is, "\n", "\n\t+") + "\n"
}

// instead says what an operator is mistaken for.
var instead = map[token.Token]struct{ kind, operator string }{
	token.LSS:  {"boundary", "<="},
	token.LEQ:  {"boundary", "<"},
	token.GTR:  {"boundary", ">="},
	token.GEQ:  {"boundary", ">"},
	token.EQL:  {"negate", "!="},
	token.NEQ:  {"negate", "=="},
	token.LAND: {"junction", "||"},
	token.LOR:  {"junction", "&&"},
}

// A finder collects the mutants of a file.
type finder struct {
	path   string
	source []byte
	files  *token.FileSet
	in     *function // where it is
	found  []mutant
}

// find returns all mutants of a file, in its order. Some do not compile, for instance where
// a variable is no longer used.
func find(path string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{path: path, source: source, files: files}
	for _, declaration := range file.Decls {
		f.walk(declaration)
	}
	return f.found, nil
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f.walkFunction(n.Type, n.Body)
			return false
		case *ast.FuncLit:
			f.walkFunction(n.Type, n.Body)
			return false
		case *ast.ReturnStmt:
			f.returnZero(n)
		case *ast.IfStmt:
			f.negate(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				f.negateCases(n)
			}
		case *ast.BinaryExpr:
			if other, ok := instead[n.Op]; ok {
				end := n.OpPos + token.Pos(len(n.Op.String()))
				f.add(other.kind, n.OpPos, end, other.operator)
			}
		case *ast.BasicLit:
			f.nextNumber(n)
		case *ast.IncDecStmt, *ast.SendStmt:
			f.add("drop", n.Pos(), n.End(), "{}")
		case *ast.AssignStmt:
			// Without a definition, what follows would not compile.
			if n.Tok != token.DEFINE {
				f.add("drop", n.Pos(), n.End(), "{}")
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && !f.unseen(call) {
				f.add("drop", n.Pos(), n.End(), "{}")
			}
		case *ast.CallExpr:
			if f.unseen(n) {
				return false
			}
			if isName(n.Fun, "make") {
				f.walkMake(n)
				return false
			}
		}
		return true
	})
}

func (f *finder) walkFunction(signature *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || len(body.List) == 0 {
		return
	}
	around := f.in
	f.in = &function{
		results: signature.Results,
		first:   f.files.Position(body.Pos()).Line,
		last:    f.files.Position(body.End()).Line,
	}
	if _, isReturn := body.List[0].(*ast.ReturnStmt); !isReturn { // which is a mutant of its own
		begin := body.List[0].Pos()
		f.add("return early", begin, begin, f.zeros()+"; ")
	}
	f.walk(body)
	f.in = around
}

func (f *finder) add(kind string, start, end token.Pos, with string) {
	from := f.files.Position(start)
	f.found = append(f.found, mutant{
		path:     f.path,
		line:     from.Line,
		column:   from.Column,
		function: f.in,
		kind:     kind,
		start:    from.Offset,
		end:      f.files.Position(end).Offset,
		with:     with,
		source:   f.source,
	})
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}

func (f *finder) negate(condition ast.Expr) {
	if binary, ok := condition.(*ast.BinaryExpr); ok && instead[binary.Op].kind == "negate" {
		return // its operator is a mutant already
	}
	f.add("negate", condition.Pos(), condition.End(), "!("+f.text(condition)+")")
}

func (f *finder) negateCases(s *ast.SwitchStmt) {
	for _, clause := range s.Body.List {
		for _, condition := range clause.(*ast.CaseClause).List {
			f.negate(condition)
		}
	}
}

// nextNumber changes a whole number by one.
func (f *finder) nextNumber(literal *ast.BasicLit) {
	if literal.Kind != token.INT {
		return
	}
	if number, err := strconv.ParseUint(literal.Value, 0, 63); err == nil {
		f.add("number", literal.Pos(), literal.End(), strconv.FormatUint(number+1, 10))
	}
}

// zeros is a statement that returns the zero values of the function's results.
func (f *finder) zeros() string {
	if f.in.results == nil {
		return "return"
	}
	var values []string
	for _, field := range f.in.results.List {
		for range max(1, len(field.Names)) {
			values = append(values, "*new("+f.text(field.Type)+")")
		}
	}
	return "return " + strings.Join(values, ", ")
}

func (f *finder) returnZero(n *ast.ReturnStmt) {
	for _, result := range n.Results {
		if !isZero(result) {
			f.add("return zero", n.Pos(), n.End(), f.zeros())
			return
		}
	}
}

// walkMake leaves out the sizes that a map or the room of a slice begins with: both grow.
func (f *finder) walkMake(call *ast.CallExpr) {
	_, isMap := call.Args[0].(*ast.MapType)
	if len(call.Args) > 1 && !isMap {
		f.walk(call.Args[1])
	}
}

// unseen reports whether no test could tell that a call is missing, or has other arguments.
func (f *finder) unseen(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	on := f.text(selector.X)
	switch selector.Sel.Name {
	case "Debug", "Info", "Warn", "Error", "Check":
		// What a line of the log says is for people. A test of some lines would only repeat them.
		return strings.HasSuffix(strings.ToLower(on), "logger") || strings.HasSuffix(on, "log")
	case "Grow", "NewReaderSize", "NewWriterSize":
		return true // These save allocations and system calls, and change nothing else.
	case "Gosched":
		return true // It only says when others may run.
	}
	return on == "zap" // a field of a line of the log
}

func isName(e ast.Expr, name string) bool {
	identifier, ok := e.(*ast.Ident)
	return ok && identifier.Name == name
}

// isZero reports whether an expression is the zero value, as far as its text shows that.
func isZero(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "false"
	case *ast.BasicLit:
		return e.Value == "0" || e.Value == `""`
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	}
	return false
}
