import { z } from 'zod'
import {
  deletedNamed,
  SavedFiltersNaming,
  Id,
  listWithTotal,
  page,
  Search,
  Timestamp,
  VisibleName,
} from './fields.ts'
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
  words: 'available tags, all labels, which tags are there',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name', wrap: true },
    { path: 'contacts_count', title: 'contacts' },
    { path: 'created_at', title: 'created' },
  ],
  names: { fields: { tag_id: 'tag', other_tag_id: 'other-tag', tag_ids: 'tag' }, by: ['name'] },
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

export const renameTag = defineOperation({
  name: 'crm_rename_tag',
  cli: 'tags rename',
  routes: ['PATCH /v1/tags/{tag_id}'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Rename a tag',
  description:
    'Its id, contacts and conversations stay. 409 `name_taken` when another tag has the name, ignoring ' +
    'case. Saved filters that name it in full follow it; callers that use the old name no longer find it.',
  words: 'rename a tag, change the name of a label, edit tag',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: ['tag.renamed/1'],
  input: z.object({
    tag_id: Id.describe('Tag id.'),
    name: VisibleName(100).describe('Tag name, 1 to 100 characters.'),
  }),
  output: z.object({
    tag: z
      .object({ id: Id.describe('Tag id.'), name: z.string().describe('Tag name.') })
      .describe('The tag.'),
    changed: z.boolean().describe('False: it had this name.'),
    saved_filters: SavedFiltersNaming.optional().describe('Saved filters that follow it; absent if none.'),
  }),
  errors: ['not_found', 'conflict'],
  examples: [
    {
      title: 'Another name',
      input: { tag_id: '7', name: 'Gold' },
      output: { tag: { id: '7', name: 'Gold' }, changed: true },
    },
  ],
})

export const deleteTag = defineOperation({
  name: 'crm_delete_tag',
  cli: 'tags delete',
  routes: ['DELETE /v1/tags/{tag_id}'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Delete a tag; its contacts and conversations stay',
  description:
    'It is removed from all contacts and conversations. Saved filters that name it are listed: they do not change, ' +
    'and no contact has it any more. Its name can be reused.',
  words: 'delete a tag, remove a label everywhere',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: ['tag.deleted/1'],
  input: z.object({ tag_id: Id.describe('Tag id.') }),
  output: z.object(deletedNamed),
  errors: ['not_found', 'conflict', 'confirm_required'],
  examples: [
    { title: 'Delete a tag', input: { tag_id: '7' }, output: { id: '7', deleted: true, saved_filters: [] } },
  ],
})

export const mergeTags = defineOperation({
  name: 'crm_merge_tags',
  cli: 'tags merge',
  routes: ['POST /v1/tags/{tag_id}/merge'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Merge a tag into another one',
  description:
    'The tag `tag_id` stays: contacts and conversations of `other_tag_id` get it, and the other tag is ' +
    'deleted. Saved filters that refer to the other tag by id or full name are updated; patterns such ' +
    'as `contains` are not. It emits one event `tag.deleted/1` with `merged_into`, and none for each ' +
    'contact. It cannot be undone.',
  words: 'merge two tags, combine duplicate labels, join tags',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: ['tag.deleted/1'],
  input: z.object({
    tag_id: Id.describe('The tag that stays.'),
    other_tag_id: Id.describe('The tag that is merged into it, and deleted.'),
  }),
  output: z.object({
    tag: z
      .object({ id: Id.describe('Tag id.'), name: z.string().describe('Tag name.') })
      .describe('The tag that stays.'),
    other_tag_id: Id.describe('The tag that was merged into it.'),
    contacts: z.int().describe('Contacts that got the tag.'),
    conversations: z.int().describe('Conversations that got the tag.'),
    saved_filters: SavedFiltersNaming.describe(
      'Saved filters that named the other tag, and name this one now.',
    ),
  }),
  errors: ['not_found', 'conflict', 'confirm_required'],
  examples: [
    {
      title: 'One tag in place of two',
      input: { tag_id: '7', other_tag_id: '8' },
      output: {
        tag: { id: '7', name: 'VIP' },
        other_tag_id: '8',
        contacts: 12,
        conversations: 3,
        saved_filters: [{ id: '3', name: 'Not reached' }],
      },
    },
  ],
})
