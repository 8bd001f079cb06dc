// Checks the site that was built: every link leads somewhere, with its fragment, and no page loads anything from elsewhere.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'

const site = process.env.SITE_OUTPUT
const base = process.env.SITE_BASE ?? '/'
const names = readdirSync(site, { recursive: true })
const wrong = []

const ids = new Map() // by page
for (const name of names.filter((name) => name.endsWith('.html'))) {
  const html = readFileSync(join(site, name), 'utf8')
  ids.set(name, new Set([...html.matchAll(/\s(?:id|name)="([^"]*)"/g)].map((found) => found[1])))
}

// fileOf returns the file that a path of the site is.
function fileOf(path) {
  for (const file of [path, join(path, 'index.html')]) if (existsSync(join(site, file)) && statSync(join(site, file)).isFile()) return file
}

for (const name of ids.keys()) {
  const html = readFileSync(join(site, name), 'utf8')
  for (const [, element, href] of html.matchAll(/<(a|link|script|img|source|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"/g)) {
    if (/^(data|mailto):/.test(href)) continue
    if (/^([a-z]+:)?\/\//.test(href)) {
      if (element !== 'a') wrong.push(`${name}: loads ${href}`)
      continue
    }
    const [path, fragment] = href.split('#', 2)
    const target = path === '' ? name : fileOf(decodeURI(path.startsWith('/') ? posix.relative(base, path) : posix.join(posix.dirname(name), path)))
    if (!target) wrong.push(`${name}: dead link: ${href}`)
    else if (fragment && ids.has(target) && !ids.get(target).has(decodeURIComponent(fragment))) wrong.push(`${name}: dead link: ${target} has no #${fragment}`)
  }
}
for (const name of names.filter((name) => name.endsWith('.css'))) {
  for (const [url] of readFileSync(join(site, name), 'utf8').matchAll(/url\(\s*["']?(https?:)?\/\/[^)]*\)/g)) wrong.push(`${name}: loads ${url}`)
}
if (wrong.length > 0) {
  console.error(wrong.join('\n'))
  process.exit(1)
}
console.log(`${ids.size} pages, no dead link`)
