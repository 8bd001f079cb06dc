// Copies the pages and their pictures to where VitePress reads them.
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pages, root } from './sections.js'

rmSync('pages', { recursive: true, force: true })
for (const [file, page] of pages) {
  mkdirSync(join('pages', dirname(page)), { recursive: true })
  cpSync(join(root, file), join('pages', page))
}
cpSync(join(root, 'docs/pictures'), 'pages/pictures', { recursive: true })
cpSync(join(root, 'apiserver/console/web/icon.svg'), 'pages/public/icon.svg')
