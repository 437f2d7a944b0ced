// Search, colours and copying, on every page of /docs.
const page = document.documentElement
const root = new URL(page.dataset.root || './', location.href)
const byId = (id) => document.getElementById(id)

// Colours: what was chosen, else what the system has.
const systemDark = matchMedia('(prefers-color-scheme: dark)')
const applyColors = () => {
  const chosen = localStorage.getItem('colorMode')
  const isDark = chosen === 'dark' || (chosen !== 'light' && systemDark.matches)
  page.classList.toggle('dark', isDark)
  for (const [name, on] of [
    ['dark-mode', isDark],
    ['light-mode', !isDark],
  ])
    document.body?.classList.toggle(name, on)
}
applyColors()
systemDark.addEventListener('change', applyColors)

/** Loads the index once, when somebody searches. */
let loading
const loadSearch = () =>
  (loading ??= (async () => {
    const [documents] = await Promise.all([
      fetch(new URL('docs/search.json', root)).then((response) => response.json()),
      new Promise((resolve, reject) => {
        const script = document.createElement('script')
        Object.assign(script, {
          src: new URL('docs/assets/minisearch.js', root).href,
          onload: resolve,
          onerror: reject,
        })
        document.head.append(script)
      }),
    ])
    const search = new MiniSearch({
      fields: ['title', 'names', 'text'],
      storeFields: ['title', 'kind', 'page', 'url', 'text'],
    })
    search.addAll(documents.map((entry, id) => ({ id, ...entry })))
    return search
  })())

const options = { boost: { title: 4, names: 3 }, prefix: true, fuzzy: (term) => (term.length > 4 ? 0.2 : 0) }

/** The hits with every word, or else with any of them. */
const find = (search, query) => {
  const all = search.search(query, { ...options, combineWith: 'AND' })
  return (all.length > 0 ? all : search.search(query, options)).slice(0, 20)
}

const excerpt = (text, terms) => {
  const at = text.toLowerCase().search(new RegExp(terms.map((term) => term.replace(/\W/g, '\\$&')).join('|')))
  const from = Math.max(0, at - 60)
  return `${from > 0 ? '…' : ''}${text.slice(from, from + 160)}${from + 160 < text.length ? '…' : ''}`
}

const element = (name, className, text) =>
  Object.assign(document.createElement(name), { className, textContent: text })

const showHits = async (query) => {
  const list = byId('hits')
  if (query.trim() === '') return list.replaceChildren()
  const hits = find(await loadSearch(), query)
  // A slow answer to what is no longer asked.
  if (byId('query').value !== query) return
  list.replaceChildren(
    ...hits.map((hit) => {
      const link = element('a', 'hit')
      link.href = new URL(hit.url, root).href
      link.append(
        element('span', `kind ${hit.kind}`, hit.kind),
        element('strong', '', hit.title),
        element('span', 'page', hit.page),
        element('span', 'excerpt', excerpt(hit.text, hit.terms)),
      )
      const item = document.createElement('li')
      item.append(link)
      return item
    }),
  )
  if (hits.length === 0) list.append(element('li', 'none', `Nothing found for “${query}”.`))
}

const openSearch = () => {
  byId('search').showModal()
  byId('query').select()
  void loadSearch()
}

const moveFocus = (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const links = [...byId('hits').querySelectorAll('a')]
  if (step === undefined || links.length === 0) return
  event.preventDefault()
  const next = links.indexOf(document.activeElement) + step
  ;(next < 0 ? byId('query') : links[Math.min(next, links.length - 1)]).focus()
}

const addCopyButtons = () => {
  for (const block of document.querySelectorAll('.guide pre')) {
    const button = element('button', 'copy', 'Copy')
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code').textContent)
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = 'Copy'), 1500)
    })
    block.append(button)
  }
}

const startPage = () => {
  applyColors()
  byId('open-search').addEventListener('click', openSearch)
  byId('toggle-colors').addEventListener('click', () => {
    localStorage.setItem('colorMode', page.classList.contains('dark') ? 'light' : 'dark')
    applyColors()
  })
  byId('query').addEventListener('input', (event) => void showHits(event.target.value))
  byId('search').addEventListener('keydown', moveFocus)
  byId('search').addEventListener('submit', (event) => {
    event.preventDefault()
    byId('hits').querySelector('a')?.click()
  })
  // A hit may be on this page.
  byId('hits').addEventListener('click', () => byId('search').close())
  addEventListener('keydown', (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable
    if ((event.key === 'k' && (event.metaKey || event.ctrlKey)) || (event.key === '/' && !isTyping)) {
      event.preventDefault()
      openSearch()
    }
  })
  addCopyButtons()
}
addEventListener('DOMContentLoaded', startPage)
