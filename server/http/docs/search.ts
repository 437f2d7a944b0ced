import { errors } from '../../../catalog/errors.ts'
import { eventTypes } from '../../../catalog/events.ts'
import { getInputSchema, listRoutes, type Operation } from '../../../catalog/index.ts'
import { getGroupOf } from '../openapi.ts'
import { headers, parameters } from '../openapi-parts.ts'
import type { Guide } from './guides.ts'

/** Something that the search finds. `url` is relative to the server's root. */
export type SearchEntry = {
  kind: 'guide' | 'operation' | 'header' | 'error' | 'event'
  title: string
  /** Where it is: the title of the page. */
  page: string
  /** Names by which it is also known. */
  names: string
  text: string
  url: string
}

const listGuideEntries = (guides: readonly Guide[]): SearchEntry[] =>
  guides.flatMap(({ name, title, sections }) =>
    sections.map((section, index) => ({
      kind: 'guide' as const,
      title: section.text,
      page: index === 0 ? '' : title,
      names: index === 0 ? name.replaceAll('-', ' ') : '',
      text: section.body,
      url: `docs/${name}${index === 0 ? '' : `#${section.id}`}`,
    })),
  )

const toEntry = (op: Operation): SearchEntry => {
  const [route] = listRoutes(op)
  const fields = Object.entries(getInputSchema(op).shape).map(
    ([name, field]) => `${name}: ${(field as { description?: string }).description ?? ''}`,
  )
  return {
    kind: 'operation',
    title: op.summary,
    page: `${route!.method} ${route!.path}`,
    names: `${op.name} ${op.name.replaceAll('_', ' ')} ${op.cli}`,
    text: [op.description, ...fields].filter(Boolean).join(' '),
    url: `docs/reference#tag/${getGroupOf(op)}/${route!.method}${route!.path}`,
  }
}

/** The guides that explain headers; others are explained with the errors. */
const headerGuides: Readonly<Record<string, string>> = {
  'RateLimit-Policy': 'rate-limits',
  RateLimit: 'rate-limits',
  'Retry-After': 'rate-limits',
  'Idempotency-Key': 'idempotency',
  'Idempotent-Replayed': 'idempotency',
  'Api-Confirm': 'dry-run',
  'If-Match': 'lost-updates',
  'If-None-Match': 'lost-updates',
  ETag: 'lost-updates',
}

const listHeaderEntries = (): SearchEntry[] => {
  const sent = Object.values(parameters).map((header) => [header.name as string, header] as const)
  const all = new Map([...sent, ...Object.entries(headers)])
  return [...all].map(([name, { description }]) => ({
    kind: 'header',
    title: name,
    page: 'Header',
    names: name.replaceAll(/([a-z])(?=[A-Z])/g, '$1 ').replaceAll('-', ' '),
    text: String(description),
    url: `docs/${headerGuides[name] ?? 'errors'}`,
  }))
}

/** Lists all that the search finds: sections of guides, operations, headers, error codes and event types. */
export const listSearchEntries = (
  guides: readonly Guide[],
  operations: readonly Operation[],
): SearchEntry[] =>
  listEntries(guides, operations).map((entry) => ({ ...entry, text: entry.text.replaceAll('`', '') }))

const listEntries = (guides: readonly Guide[], operations: readonly Operation[]): SearchEntry[] => [
  ...listGuideEntries(guides),
  ...operations.map(toEntry),
  ...listHeaderEntries(),
  ...Object.entries(errors).map(([code, { status, title, description, fix }]) => ({
    kind: 'error' as const,
    title: `${code}: ${title}`,
    page: `HTTP ${status}`,
    names: code.replaceAll('_', ' '),
    text: `${description} ${fix}`,
    url: `errors/${code}`,
  })),
  ...Object.entries(eventTypes).map(([type, { description }]) => ({
    kind: 'event' as const,
    title: type,
    page: 'Event type',
    names: type.replaceAll(/[._]/g, ' '),
    text: description,
    url: 'docs/events',
  })),
]
