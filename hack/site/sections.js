// What the site shows, in the order of its sidebar. Every file below docs/ must be in one of the sections.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The repository's root. */
export const root = process.env.REPOSITORY_ROOT

const sections = [
  { text: 'Begin', files: ['README.md', 'docs/first-hour.md', 'docs/comparison.md', 'docs/install.md', 'docs/sizing.md', 'hack/local/README.md'] },
  {
    text: 'Tasks',
    files: ['docs/policies.md', 'docs/failover.md', 'docs/drills.md', 'docs/console.md', 'docs/dns.md', 'docs/federation-dns.md', 'docs/load-balancer.md', 'docs/mcs.md',
      'docs/clusterset-ips.md', 'docs/in-cluster-names.md', 'docs/node-agent.md', 'docs/pull.md', 'docs/tools.md', 'docs/operations.md', 'docs/security.md'],
  },
  { text: 'Concepts', files: ['docs/architecture.md', 'docs/glossary.md'] },
  { text: 'Reference', collapsed: true, files: ['docs/reference/README.md', ...folder('docs/reference'), 'docs/performance.md', 'docs/dataplane-conformance.md'] },
  { text: 'Runbooks', collapsed: true, files: ['docs/runbooks/README.md', ...folder('docs/runbooks')] },
  { text: 'Decisions', collapsed: true, files: ['docs/adr/README.md'], groups: decisions() },
  { text: 'Project', collapsed: true, files: ['docs/changelog.md', '.github/CONTRIBUTING.md', '.github/SECURITY.md'] },
]

// Titles that are too long for the sidebar, or say little there.
const titles = {
  'README.md': 'What it is',
  '.github/SECURITY.md': 'Report a vulnerability',
  'docs/adr/README.md': 'All decisions',
  'docs/failover.md': 'Failover and drain',
  'docs/pull.md': 'Clusters behind NAT',
  'docs/reference/README.md': 'Overview',
  'docs/runbooks/README.md': 'All runbooks',
  'docs/tools.md': 'Tools',
}

// Where pages are that are not at the place of their file below docs/.
const elsewhere = { 'README.md': 'index.md', 'hack/local/README.md': 'local.md', '.github/CONTRIBUTING.md': 'contributing.md', '.github/SECURITY.md': 'vulnerabilities.md' }

function folder(path) {
  return readdirSync(join(root, path)).filter((name) => name.endsWith('.md') && name !== 'README.md').sort().map((name) => join(path, name))
}

// decisions are the groups of the index of decisions.
function decisions() {
  const groups = []
  for (const line of readFileSync(join(root, 'docs/adr/README.md'), 'utf8').split('\n')) {
    if (line.startsWith('## ')) groups.push({ text: line.slice(3), collapsed: true, files: [] })
    const file = line.match(/^- \[.*\]\((\d+-[^)]*)\)$/)
    if (file) groups.at(-1).files.push(join('docs/adr', file[1]))
  }
  return groups
}

function titleOf(file) {
  return titles[file] ?? readFileSync(join(root, file), 'utf8').match(/^# (.*)$/m)[1].replaceAll('`', '')
}

function pageOf(file) {
  return elsewhere[file] ?? file.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1index.md')
}

const files = sections.flatMap((section) => [...section.files, ...(section.groups ?? []).flatMap((group) => group.files)])

/** Pages by their file in the repository, and back. */
export const pages = new Map(files.map((file) => [file, pageOf(file)]))
export const sources = new Map(files.map((file) => [pageOf(file), file]))

for (const file of readdirSync(join(root, 'docs'), { recursive: true })) {
  if (file.endsWith('.md') && !pages.has(join('docs', file))) throw new Error(`docs/${file} is in no section of the site: add it to hack/site/sections.js`)
}
for (const file of files) if (!existsSync(join(root, file))) throw new Error(`hack/site/sections.js names ${file}, which does not exist`)

/** The address of a page on the site. */
export const address = (page) => '/' + page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')

const items = (group) => [
  ...group.files.map((file) => ({ text: titleOf(file), link: address(pageOf(file)) })),
  ...(group.groups ?? []).map((g) => ({ text: g.text, collapsed: g.collapsed, items: items(g) })),
]

export const sidebar = sections.map((section) => ({ text: section.text, collapsed: section.collapsed, items: items(section) }))
