// Package pages owns what people see in a browser: a view for each page, and the words and
// links of a view. The templates stand in templates/web.
//
// It must not decide: it asks, acts and takes in through the desk, and shows the answer. Every
// page works without script; the script only exchanges parts of a page that moved.
//
// Pages never change once made; no lock guards them.
package pages
