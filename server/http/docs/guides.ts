import { readFileSync } from 'node:fs'
import { lazy } from '../../lazy.ts'
import { listSections, type ResolveLink, type Section, withoutDeadLinks } from './markdown.ts'

/** The guides of the site, in groups: files of `docs/`, each with the name in its address and a summary. */
const groups = {
  Start: {
    'first-contact': 'From a key to a contact, a message and an event.',
    sandbox: 'An emulated messaging provider: customers, messages, time.',
    'going-live': 'A checklist for production.',
  },
  'How requests work': {
    'dry-run': 'Run every check without changing anything; plans; confirmations.',
    idempotency: 'Retries that never run a change twice.',
    'lost-updates': 'Optimistic concurrency: `ETag` and `If-Match`.',
    errors: 'One format, stable codes, and when to retry.',
    'api-versions': 'The version of the API, and what a new one would change.',
    'rate-limits': 'Limits and the headers that state them.',
    filters: 'Conditions on any field of a contact.',
    'message-search': 'Full-text search in messages and notes.',
    jobs: 'Bulk changes and exports: plans, progress, undo.',
    'bulk-messages': 'Send a template to many contacts: values, hours, limits.',
    phones: 'One contact for all spellings of a number; merges.',
  },
  'Events and reports': {
    events: 'The log of all changes, to read or stream.',
    webhooks: 'Receive events at a URL: signatures, retries, replay.',
    listen: 'Receive events while you develop.',
    reports: 'Definitions of the metrics.',
  },
  Clients: {
    'client-library': 'TypeScript and JavaScript: `@wcrm/client`.',
    'command-line': 'Output, input and failures of commands in scripts.',
    cookbook: 'Recipes for shell scripts.',
    profiles: 'Keys and servers of the command line.',
    inbox: 'Answer customers in a terminal.',
    clients: 'Connect Claude, ChatGPT, Cursor and others.',
    mcp: 'Results, untrusted text and confirmations of tools.',
    agents: 'Policies and approvals for AI agents.',
    oauth: 'Sign in hosted AI clients.',
  },
  Operating: {
    configuration: 'Flags and environment variables.',
    operations: 'Keys, retention, backups, databases, upgrades, logs.',
    capacity: 'Size a server: space, CPU time, projections.',
    provider: 'Connect a messaging provider.',
    channels: 'Bridged channels: connect your own messenger.',
    visibility: 'What staff and agents can see.',
    privacy: 'Personal data: storage, erasure, export.',
    consent: 'Consent records and opt-out keywords.',
    'template-rules': 'The rules of the template lint.',
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
