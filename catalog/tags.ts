import { z } from 'zod'
import { Id, listWithTotal, page, Search, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

export const TagRef = z.object({
  id: Id.describe('Tag id.'),
  name: z.string().nullable().describe('Tag name.'),
})

const Tag = z
  .object({
    id: Id.describe('Tag id.'),
    name: z.string().describe('Tag name; unique, ignoring case.'),
    contacts_count: z.int().describe('Count of contacts with this tag.'),
    created_at: Timestamp.describe('When it was created.'),
  })
  .meta({ id: 'Tag' })

export const listTags = defineOperation({
  name: 'crm_list_tags',
  cli: 'tags list',
  routes: ['GET /v1/tags'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List contact tags by name',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name', wrap: true },
    { path: 'contacts_count', title: 'contacts' },
    { path: 'created_at', title: 'created' },
  ],
  names: { fields: { tag_ids: 'tag' }, by: ['name'] },
  input: z.object({ search: Search('Name'), ...page }),
  output: z.object(listWithTotal(Tag)),
  errors: [],
  examples: [
    {
      title: 'Tags with "vip"',
      input: { search: 'vip' },
      output: {
        data: [{ id: '7', name: 'VIP', contacts_count: 12, created_at: '2026-10-01T09:30:00.000Z' }],
        total: 1,
        next_cursor: null,
      },
    },
  ],
})
