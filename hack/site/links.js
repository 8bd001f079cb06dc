// Links between files of the repository become links between pages of the site.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { address, pages, root, sources } from './sections.js'

// becomes returns what a link of a file leads to on the site: an address, or null where the repository has what it leads to, and the site has not.
function becomes(source, href) {
  const [path, fragment] = href.split('#', 2)
  const target = join(dirname(source), path)
  if (pages.has(target)) return address(pages.get(target)) + (fragment ? '#' + fragment : '')
  if (existsSync(join(root, target))) return null
  throw new Error(`${source}: dead link: ${href}`)
}

/** A plugin of markdown-it. What only the repository has is shown as text: the site is whole without it. */
export function links(md) {
  md.core.ruler.push('repository-links', (state) => {
    const source = sources.get(state.env.relativePath)
    for (const token of state.tokens.flatMap((block) => block.children ?? [])) {
      if (token.type !== 'link_open') continue
      const href = decodeURI(token.attrGet('href'))
      if (/^([a-z]+:|#)/.test(href)) continue
      const there = becomes(source, href)
      if (there) token.attrSet('href', there)
      else outside(state, token, join(dirname(source), href))
    }
  })
}

// outside replaces a link by its text.
function outside(state, open, path) {
  const siblings = state.tokens.find((block) => block.children?.includes(open)).children
  const close = siblings.slice(siblings.indexOf(open)).find((token) => token.type === 'link_close')
  for (const [token, content] of [[open, `<span class="outside" title="${state.md.utils.escapeHtml(path)}, in the repository">`], [close, '</span>']]) {
    token.type = 'html_inline'
    token.tag = ''
    token.content = content
  }
}

/** Headings have the addresses that GitHub gives them, so that links work in both places. */
export const slugify = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
