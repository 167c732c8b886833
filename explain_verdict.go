package sitemap

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// judgement is what all that is known of the site's pages makes of one of them.
type judgement struct {
	record   state.Record
	reason   verdict.Reason
	original string // of a duplicate
	isNobody bool   // it was known for a page that named it, and none does any more
}

// judged gives the verdict on the page as a refresh would give it now, and explains it
// where it is not to be listed. A false means that the page is no candidate.
func (e *explainer) judged() (reason verdict.Reason, explained string, isCandidate bool, err error) {
	var j judgement
	err = e.fresh(func(book *state.Book) error {
		var err error
		j, err = e.judgeBy(book)
		return err
	})
	if err != nil || j.isNobody {
		return verdict.Unknown, "", false, err
	}
	e.x.Linked = e.x.Linked || j.record.Flags&verdict.FlagLinked != 0
	if j.reason.Listed() {
		return j.reason, "", true, nil
	}
	return j.reason, e.words(&j), true, nil
}

// judgeBy does with a book what a listing does before it writes.
func (e *explainer) judgeBy(book *state.Book) (judgement, error) {
	l := &lister{site: e.site}
	if e.rules != nil {
		l.rules = *e.rules
	}
	if err := l.look(e.ctx, book, true); err != nil {
		return judgement{}, err
	}
	r, found, err := book.Find(e.ctx, e.path)
	if err != nil {
		return judgement{}, err
	}
	if !found || r.Flags&verdict.FlagGone != 0 || r.Flags&verdict.FlagTarget != 0 && !l.survey.IsTarget(e.path) {
		return judgement{isNobody: true}, nil
	}
	j := judgement{record: *r}
	j.reason = l.verdict(&j.record)
	if hash, ok := l.survey.Original(&j.record); ok && j.reason == verdict.Duplicate {
		j.original, err = e.pathOf(book, hash)
	}
	return j, err
}

var errThatOne = errors.New("that one")

// pathOf is the path of a hash; "": there is none.
func (e *explainer) pathOf(book *state.Book, hash uint64) (string, error) {
	var path string
	err := book.Records(e.ctx, func(r *state.Record) error {
		if verdict.Hash(r.Page.Path) != hash {
			return nil
		}
		path = strings.Clone(r.Page.Path)
		return errThatOne
	})
	if err == errThatOne {
		err = nil
	}
	return path, err
}

// words explains a verdict.
func (e *explainer) words(j *judgement) string {
	s := e.site
	switch j.reason {
	case verdict.Redirects:
		return "It answered with a redirect. The page that it leads to is listed, if a source knows that one."
	case verdict.Gone:
		return "It answered with 404 or 410. Serve it, or take away what names it."
	case verdict.Refused:
		return "It answered a stranger with a refusal, such as 401 or 403: it is behind a login or an address rule. Nothing is to be done if it is private."
	case verdict.Failing:
		return "It answered with an error (5xx), or with a status that is no 200, when it was asked for the first time."
	case verdict.NotHTML:
		return "Its Content-Type is not that of HTML, or is missing, where HTML was expected: set the Content-Type."
	case verdict.Fragment:
		return "It is HTML with neither a doctype nor a title, as parts are that other pages include: give it one."
	case verdict.NoIndex:
		return "It asks not to be indexed, in a <meta name=\"robots\"> or in an X-Robots-Tag header: take that out."
	case verdict.Refreshes:
		return "A refresh (<meta http-equiv=\"refresh\">, or a Refresh header) leads elsewhere: take that out."
	case verdict.CanonicalAway:
		return "Its rel=canonical has another scheme, host or port than the site: set 'base_url', or 'canonical ignore'."
	case verdict.CanonicalHere:
		return fmt.Sprintf("Its rel=canonical names another page of the site, which answers and is listed in its stead: %s.", s.base+j.record.Canonical)
	case verdict.Duplicate:
		if j.original == "" {
			return "It has the same text as a page whose path is nearly the same, and which stays."
		}
		return fmt.Sprintf("It has the same text as a page whose path is nearly the same, and which stays: %s.", s.base+j.original)
	case verdict.SoftNotFound:
		return "Only visitors and links name it, and it answers with what a page that cannot exist gets, too: answer 404 for what does not exist."
	case verdict.Forbidden:
		return fmt.Sprintf("The site's robots.txt keeps Googlebot from it: %.200q.", e.rules.rules.Line(e.path))
	case verdict.Waiting:
		return e.waiting(&j.record)
	case verdict.Orphan:
		return "No page of the site links to it, and 'orphans omit' leaves out such pages: link to it."
	case verdict.Guarded:
		return "Its path has a name, or matches a pattern, of 'ask never', so nobody knows whether a stranger gets it: give 'ask never' a list of yours, or name the page in a list of 'urls'."
	}
	return ""
}

// waiting says what a page waits for.
func (e *explainer) waiting(r *state.Record) string {
	switch {
	case r.Asked != 0:
		return fmt.Sprintf("It was asked for, and gave no answer (aborted, or over ten seconds): look at the page. It is asked for again %s.", dueAt(verdict.Due(r, verdict.Hash(e.path)), e.now))
	case r.Flags&verdict.FlagDiscovered != 0:
		return "Only visitors and links name it, and it was not asked for yet: wait. Upstreams are asked at the pace of 'ask'."
	}
	return "It was not asked for yet, and another page of its folder was refused, redirected or not found: wait for its own answer."
}
