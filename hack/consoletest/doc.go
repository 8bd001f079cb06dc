// Package consoletest drives the console in a real browser: Debian's Chromium, the plugin's local side, and the real
// apiserver with the objects of a generated fleet. The controllers do not run, so that the objects stay as they are.
package consoletest
