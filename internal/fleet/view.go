package fleet

import (
	"cmp"
	"slices"
)

// Sight is what one live node sees of the site.
type Sight struct {
	Node      string // ID
	Name      string // for operators
	View      string // digest of its files, or of the application's front page; "": it cannot tell
	IsSettled bool   // it has seen the same before: no deployment is under way
}

// Vote is what a node may do by what the others see.
type Vote uint8

// The votes. The view of most nodes is listed, not the newest: neither a checkout, which gives all files new times, nor
// a rollback is to win by itself.
const (
	Free     Vote = iota // whoever is due refreshes the site
	Outvoted             // most nodes have another view in common, and refresh the site
	Yields               // no view is that of most nodes, and the writer, whose view is another one, stays the writer
)

// Judgement is what follows from the views of all live nodes.
type Judgement struct {
	Vote       Vote
	IsSeconded bool     // another node has the same view, or there is none that could tell
	Apart      []string // names of the nodes with another view than is listed, for one node to warn of; nil: nobody is to
}

// judge decides what a node may do. isLasting says that the views of all have been as they are for over two intervals:
// until then they may differ because of the times at which they were taken, or of a deployment.
func judge(own Sight, others []Sight, writer string, isLasting bool) Judgement {
	all := voters(own, others)
	if own.View == "" {
		return Judgement{IsSeconded: true}
	}
	j := Judgement{IsSeconded: isSeconded(own, others)}
	listed, isMajority := majority(all)
	if !isMajority {
		listed = viewOf(all, writer)
	}
	isOther := listed != "" && listed != own.View
	if isOther && isMajority {
		j.Vote = Outvoted
	} else if isOther && isLasting {
		j.Vote = Yields
	}
	// All nodes come to the same result. The first one tells operators of it.
	first := slices.MinFunc(all, func(a, b Sight) int { return cmp.Compare(a.Node, b.Node) })
	if isLasting && first.Node == own.Node {
		j.Apart = apart(all, cmp.Or(listed, own.View))
	}
	return j
}

// voters are the nodes that can tell what they see.
func voters(own Sight, others []Sight) []Sight {
	all := append([]Sight{own}, others...)
	return slices.DeleteFunc(all, func(s Sight) bool { return s.View == "" })
}

// majority returns the view of more than half of the nodes; false: there is none.
func majority(all []Sight) (view string, ok bool) {
	counts := make(map[string]int)
	for _, s := range all {
		counts[s.View]++
		if 2*counts[s.View] > len(all) {
			return s.View, true
		}
	}
	return "", false
}

// viewOf returns the view of a node; "": it is not live, or cannot tell.
func viewOf(all []Sight, node string) string {
	for _, s := range all {
		if s.Node == node {
			return s.View
		}
	}
	return ""
}

// isSeconded reports whether another node has the same view, or none has one that lasts: the views of an application
// whose front page is never the same twice tell nothing.
func isSeconded(own Sight, others []Sight) bool {
	couldTell := false
	for _, s := range others {
		if s.View == own.View {
			return true
		}
		couldTell = couldTell || s.View != "" && s.IsSettled
	}
	return !couldTell
}

// apart returns the names of the nodes with another view, sorted.
func apart(all []Sight, view string) (names []string) {
	for _, s := range all {
		if s.View != view {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
