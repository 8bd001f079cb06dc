package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// JUnit's format, as pipelines read it.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
	}
)

// reportJUnit has the drill itself, and each objective, as a test.
func reportJUnit(out io.Writer, d *v1beta1.FailoverDrill) error {
	suite := junitSuite{Name: "failoverdrill " + d.Name}
	test := func(name string, passed bool, message string) {
		c := junitCase{Class: "failoverdrill." + d.Name, Name: name}
		if !passed {
			c.Failure = &junitFailure{Message: message}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	s := &d.Status
	test(fmt.Sprintf("%s of %s", d.Spec.Method, strings.Join(s.Clusters, ", ")), s.Outcome == v1beta1.DrillSucceeded,
		fmt.Sprintf("%s, %s: %s", cmp.Or(string(s.Outcome), string(s.Phase)), s.Reason, s.Message))
	if s.Report != nil {
		for _, o := range s.Report.Objectives {
			measured := "never"
			if o.Measured != nil {
				measured = fmt.Sprint(*o.Measured)
			}
			test(o.Name, o.Met, fmt.Sprintf("asked for %d, measured %s", o.Limit, measured))
		}
	}
	suite.Tests = len(suite.Cases)
	b, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = out.Write(append([]byte(xml.Header), append(b, '\n')...))
	}
	return err
}
