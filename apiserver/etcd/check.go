package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// checkDatabase reads the database through, if there is one. etcd's only reaction to a damaged one is a panic.
func checkDatabase(etcdDir string) error {
	path := filepath.Join(etcdDir, "member", "snap", "db")
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch err := readThrough(path, info.Size()); err {
	case nil:
		return nil
	case berrors.ErrTimeout:
		return fmt.Errorf("database %s is in use by another process", path)
	default:
		return damagedError(path, err)
	}
}

func damagedError(path string, cause any) error {
	return fmt.Errorf("database %s is damaged (%v): stop, move %s away and put a backup in its place", path, cause, filepath.Dir(filepath.Dir(path)))
}

// readThrough opens a database for reading and visits every page in use. Reading a page beyond the end of a truncated
// file is a fault, which becomes an error, too.
func readThrough(path string, size int64) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it was only read
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it has %d bytes and should have %d", size, tx.Size())
		}
		if tx.Bucket([]byte("key")) == nil || tx.Bucket([]byte("meta")) == nil {
			return fmt.Errorf("it is not etcd's")
		}
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			return b.ForEach(func(_, _ []byte) error { return nil })
		})
	})
}
