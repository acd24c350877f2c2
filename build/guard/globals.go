package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// globalState finds package variables that change: assigned in a function, or of a type that exists to change.
// Tables and sentinels that are only read are values, not state.
func globalState(t *tree) ([]finding, error) {
	globals := map[string]map[string]bool{} // package folder -> its package variables
	var found []finding
	for f := range t.library {
		if globals[f.dir] == nil {
			globals[f.dir] = map[string]bool{}
		}
		for spec := range packageVars(f) {
			for _, name := range spec.Names {
				globals[f.dir][name.Name] = true
				if pkg := lockType(spec); pkg != "" {
					found = append(found, finding{t.at(name.Pos()), fmt.Sprintf("%s is a package variable of %s; the library keeps no global state", name.Name, pkg)})
				}
			}
		}
	}
	for f := range t.library {
		for name := range assigned(f) {
			if globals[f.dir][name.Name] && isPackageVar(f, name) {
				found = append(found, finding{t.at(name.Pos()), fmt.Sprintf("changes the package variable %s; the library keeps no global state", name.Name)})
			}
		}
	}
	return found, nil
}

// packageVars yields f's variable declarations outside functions.
func packageVars(f *file) func(func(*ast.ValueSpec) bool) {
	return func(yield func(*ast.ValueSpec) bool) {
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				if spec, ok := s.(*ast.ValueSpec); ok && !yield(spec) {
					return
				}
			}
		}
	}
}

// lockType names the sync or atomic type of a declaration, or nothing.
func lockType(spec *ast.ValueSpec) string {
	of := spec.Type
	if index, ok := of.(*ast.IndexExpr); ok { // atomic.Pointer[T]
		of = index.X
	}
	sel, ok := of.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "sync" || pkg.Name == "atomic") {
		return pkg.Name + "." + sel.Sel.Name
	}
	return ""
}

// assigned yields the variable at the root of each assignment, increment and decrement inside f's functions.
func assigned(f *file) func(func(*ast.Ident) bool) {
	return func(yield func(*ast.Ident) bool) {
		stopped := false
		target := func(e ast.Expr) {
			if name := rootIdent(e); name != nil && !stopped {
				stopped = !yield(name)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					for _, e := range s.Lhs {
						target(e)
					}
				}
			case *ast.IncDecStmt:
				target(s.X)
			}
			return !stopped
		})
	}
}

func rootIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// isPackageVar says whether name is not a local of the same name: the parser resolves locals, and this file's package variables
// to their declaration, and leaves those of other files unresolved.
func isPackageVar(f *file, name *ast.Ident) bool {
	if name.Obj == nil {
		return true
	}
	for spec := range packageVars(f) {
		if name.Obj.Decl == spec {
			return true
		}
	}
	return false
}
