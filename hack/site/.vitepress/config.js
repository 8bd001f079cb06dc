import { defineConfig } from 'vitepress'
import { links, slugify } from '../links.js'
import { sidebar } from '../sections.js'

const base = process.env.SITE_BASE ?? '/'

export default defineConfig({
  title: 'federation',
  description: 'One API for many Kubernetes clusters',
  lang: 'en',
  base,
  srcDir: 'pages',
  outDir: process.env.SITE_OUTPUT,
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  markdown: { anchor: { slugify }, config: links },
  vite: { build: { chunkSizeWarningLimit: 4096 } }, // the index of the search, which is loaded when somebody searches
  themeConfig: {
    sidebar,
    outline: 'deep',
    search: {
      provider: 'local',
      // What tells how comes before what lists all, and why it is so. The browser gets the text of the function: it must not use anything outside.
      options: { miniSearch: { searchOptions: { boostDocument: (page) => (/\/(reference|adr)\/|\/changelog/.test(page) ? 0.3 : 1) } } },
    },
    nav: [
      { text: 'First hour', link: '/first-hour' },
      { text: 'Install', link: '/install' },
      { text: 'Reference', link: '/reference/' },
    ],
  },
})
