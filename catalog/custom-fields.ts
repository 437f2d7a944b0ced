import { z } from 'zod'
import { hasVisibleText } from './text.ts'
import {
  deletedNamed,
  SavedFiltersNaming,
  idOf,
  listWithTotal,
  page,
  Search,
  Timestamp,
  VisibleName,
} from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

/** The types of a custom field; which input each takes is in server/domains/contacts/attributes.ts. */
export const customFieldTypes = [
  'text',
  'textarea',
  'select',
  'multiselect',
  'checkbox',
  'radio',
  'date',
  'datetime',
  'number',
  'email',
  'url',
  'phone',
  'int',
  'float',
  'boolean',
  'decimal',
] as const
export type CustomFieldType = (typeof customFieldTypes)[number]

/** Types whose values are picked from options. */
export const optionTypes: readonly CustomFieldType[] = ['select', 'multiselect', 'radio']

const visibilities = ['visible_to_all', 'manager_only'] as const

const Option = z.strictObject({
  label: VisibleName(200).describe('Label shown to people.'),
  value: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .regex(/^[^,]*$/, 'must not contain a comma')
    .refine(hasVisibleText, 'must have a visible character')
    .describe('Value that is stored; no comma.'),
})
const Options = z.array(Option).min(1).max(200)
const Label = VisibleName(120)

const CustomField = z
  .object({
    id: idOf('custom_field').describe('Custom field id.'),
    key: z.string().describe('The key in `attributes`.'),
    label: z.string().nullable().describe('Label shown to people.'),
    type: z.enum(customFieldTypes).nullable().describe('Value type.'),
    options: z
      .array(
        z.object({
          label: z.string().describe('Label shown to people.'),
          value: z.string().describe('Value that is stored.'),
        }),
      )
      .nullable()
      .describe('Choices of a select, multiselect or radio field; null for other types.'),
    read_only: z.boolean().describe('True: values come from the system and cannot be set.'),
    visibility: z.enum(visibilities).nullable().describe('`manager_only` fields are never shown to agents.'),
    in_use: z.boolean().nullable().describe('True: at least one contact has a value.'),
    created_at: Timestamp.nullable().describe('When it was created.'),
  })
  .meta({ id: 'CustomField' })

const field = {
  id: '4',
  key: 'plan',
  label: 'Plan',
  type: 'select' as const,
  options: [
    { label: 'Basic', value: 'basic' },
    { label: 'Pro', value: 'pro' },
  ],
  read_only: false,
  visibility: 'visible_to_all' as const,
  in_use: true,
  created_at: '2026-10-01T09:30:00.000Z',
}

export const listCustomFields = defineOperation({
  name: 'crm_list_custom_fields',
  cli: 'custom-fields list',
  routes: ['GET /v1/custom-fields'],
  since,
  stability: 'stable',
  summary: 'List the custom fields of contacts',
  forModels: 'Their keys are those of `attributes` of a contact.',
  description: 'In order of creation. Agents do not see manager-only fields.',
  slim: ['id', 'key', 'label', 'type', 'options.value', 'read_only'],
  words:
    'contact attributes, properties, what fields do contacts have, schema of contacts, custom field ' +
    'keys and options',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'key' },
    { path: 'label' },
    { path: 'type' },
    { path: 'options.label', title: 'options', wrap: true },
    { path: 'visibility' },
    { path: 'read_only', words: { true: 'yes', false: '' } },
    { path: 'in_use', words: { true: 'yes', false: '' } },
  ],
  names: { fields: { custom_field_id: 'custom-field' }, by: ['key', 'label'] },
  input: z.object({
    search: Search('Key or label'),
    type: z.enum(customFieldTypes).optional().describe('Only fields of this type.'),
    ...page,
  }),
  output: z.object(listWithTotal(CustomField)),
  errors: [],
  examples: [
    {
      title: 'Fields with choices',
      input: { type: 'select' },
      output: { data: [field], total: 1, next_cursor: null },
    },
  ],
})

export const createCustomField = defineOperation({
  name: 'crm_create_custom_field',
  cli: 'custom-fields create',
  routes: [{ route: 'POST /v1/custom-fields', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Create a custom field',
  description: 'Managers and above. Key and type cannot change later. A workspace has at most 200 fields.',
  words: 'add a new attribute, property, column or field to contacts, dropdown',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  emits: [],
  input: z.object({
    key: z
      .string()
      .regex(
        /^[a-z][a-z0-9_]{0,59}$/,
        'must be 1 to 60 lowercase letters, digits and underscores, starting with a letter',
      )
      .describe('The key in `attributes`: lowercase letters, digits and underscores, starting with a letter.')
      .meta({ examples: ['plan'] }),
    label: Label.optional().describe('Label shown to people; the key when absent.'),
    type: z.enum(customFieldTypes).describe('Value type; cannot change later.'),
    options: Options.optional().describe(
      'Choices, 1 to 200; required for select, multiselect and radio, refused for other types.',
    ),
    visibility: z
      .enum(visibilities)
      .default('visible_to_all')
      .describe('`manager_only` hides the field from agents.'),
  }),
  output: z.object({
    ...CustomField.shape,
    id: idOf('custom_field').nullable().describe('Custom field id; null in a dry run.'),
  }),
  errors: ['conflict', 'forbidden'],
  examples: [
    {
      title: 'A field with choices',
      input: { key: 'service', label: 'Service', type: 'select', options: field.options },
      output: { ...field, id: '12', key: 'service', label: 'Service', in_use: false },
    },
  ],
})

export const updateCustomField = defineOperation({
  name: 'crm_update_custom_field',
  cli: 'custom-fields update',
  routes: ['PATCH /v1/custom-fields/{custom_field_id}'],
  since,
  stability: 'stable',
  summary: 'Change the label, the options or the visibility of a custom field',
  description:
    'Managers and above. Omitted fields do not change. Values that are no longer an option ' +
    'remain stored and are still shown.',
  words:
    'edit a custom field, add an option to a dropdown, hide a field from staff, rename attribute, ' +
    'manager only',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  // A field that was the managers' is shown to all.
  asks: { visibility: ['visible_to_all'] },
  emits: [],
  input: z.object({
    custom_field_id: idOf('custom_field').describe('Custom field id.'),
    label: Label.optional().describe('Label shown to people.'),
    options: Options.optional().describe('The new choices, replacing the old ones.'),
    visibility: z
      .enum(visibilities)
      .optional()
      .describe(
        '`manager_only` hides the field from agents. `visible_to_all`: the key of an AI agent asks a person.',
      ),
  }),
  output: z.object({
    ...CustomField.shape,
    saved_filters: SavedFiltersNaming.optional().describe(
      'Saved filters that name an option it has lost; absent if none.',
    ),
  }),
  errors: ['not_found', 'conflict', 'forbidden'],
  examples: [
    {
      title: 'Hide a field from agents',
      input: { custom_field_id: '4', visibility: 'manager_only' },
      output: { ...field, visibility: 'manager_only' },
    },
  ],
})

export const deleteCustomField = defineOperation({
  name: 'crm_delete_custom_field',
  cli: 'custom-fields delete',
  routes: ['DELETE /v1/custom-fields/{custom_field_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a custom field and hide its values',
  description: 'Managers and above. The `email` field is built in and cannot be deleted.',
  words: 'remove a custom field, attribute, property or column',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: [],
  input: z.object({ custom_field_id: idOf('custom_field').describe('Custom field id.') }),
  output: z.object(deletedNamed),
  errors: ['not_found', 'conflict', 'forbidden', 'confirm_required'],
  examples: [
    {
      title: 'Delete a field',
      input: { custom_field_id: '4' },
      output: { id: '4', deleted: true, saved_filters: [] },
    },
  ],
})
