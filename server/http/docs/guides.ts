import { readFileSync } from 'node:fs'
import { lazy } from '../../lazy.ts'
import { listSections, type ResolveLink, type Section, withoutDeadLinks } from './markdown.ts'

/** The guides of the site, in groups: files of `docs/`, each with the name in its address and what it is about. */
const groups = {
  Start: {
    'first-contact': 'From a key to a contact, a message and an event.',
    sandbox: 'A provider to try everything on: customers, messages, time.',
    'going-live': 'What to do before real customers write.',
  },
  'How requests work': {
    'dry-run': 'Every check runs, nothing changes.',
    idempotency: 'Retries that never do anything twice.',
    'lost-updates': 'Changes that overwrite nothing unseen: `ETag` and `If-Match`.',
    errors: 'One form, stable codes, and what to do.',
    'api-versions': 'Pinned to a key, announced before they end.',
    'rate-limits': 'How much is allowed, and the headers that tell.',
    filters: 'Conditions on any field of a contact.',
    jobs: 'Changes of many contacts: plans, progress, undo.',
    'bulk-messages': 'A template to many: values, hours, limits, broadcasts.',
    phones: 'One contact for all spellings of a number.',
  },
  'What happens': {
    events: 'The log of all changes, to read or to follow.',
    webhooks: 'Signed, retried, replayed.',
    listen: 'Receive events while you develop.',
    reports: 'How replies and reports are counted.',
  },
  Clients: {
    'client-library': 'TypeScript and JavaScript: `@wcrm/client`.',
    'command-line': 'Commands in scripts.',
    cookbook: 'Recipes for the shell.',
    profiles: 'Keys and servers of the command line.',
    inbox: 'Answer customers in a terminal.',
    clients: 'Claude, ChatGPT, Cursor and others.',
    mcp: 'What tools answer.',
    agents: 'What agents may do alone.',
    oauth: 'Signing in hosted AI clients.',
  },
  Operating: {
    operations: 'Keys, backups, updates, databases.',
    capacity: 'What it takes, and how it grows.',
    provider: 'Connecting a messaging provider.',
    channels: "Channels of one's own.",
    visibility: 'What staff may see.',
    privacy: 'What is held on a person, and for how long.',
    consent: 'What customers agreed to, and STOP.',
    'template-rules': 'What the template lint checks.',
  },
} as const

export type Guide = {
  /** The last part of its address: `/docs/<name>`. */
  name: string
  group: string
  title: string
  /** One sentence: what it is about. */
  about: string
  /** As it is served: without links to what the site does not have. */
  markdown: string
  sections: Section[]
}

const names = new Set(Object.values(groups).flatMap((guides) => Object.keys(guides)))

/** Links of guides name other guides by file, pages of the server by path, and other sites. */
export const resolveGuideLink =
  (root: string): ResolveLink =>
  (target) => {
    if (/^(?:https:\/\/|#)/.test(target)) return target
    if (target.startsWith('/')) return `${root}${target.slice(1)}`
    const guide = /^([\w-]+)\.md(#.*)?$/.exec(target)
    return guide && names.has(guide[1]!) ? `${root}docs/${guide[1]}${guide[2] ?? ''}` : undefined
  }

const readGuide = (name: string, group: string, about: string): Guide => {
  const source = readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8')
  const markdown = withoutDeadLinks(source, resolveGuideLink(''))
  const sections = listSections(markdown)
  return { name, group, title: sections[0]?.text ?? name, about, markdown, sections }
}

/** Reads all guides, once. */
export const createGuides = (): (() => readonly Guide[]) =>
  lazy(() =>
    Object.entries(groups).flatMap(([group, guides]) =>
      Object.entries(guides).map(([name, about]) => readGuide(name, group, about)),
    ),
  )
