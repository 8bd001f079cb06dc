// Package dnsgrant stores DNSNameGrants.
package dnsgrant
