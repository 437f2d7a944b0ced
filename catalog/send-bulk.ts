import { z } from 'zod'
import { Broadcast, broadcastExample, ScheduledAt, StartsAt } from './broadcasts.ts'
import { jobExample, Job, KEPT_PLAN, target, targetAlternatives } from './bulk-jobs.ts'
import { ContactName, EXPENSIVE_READ, Id, idOf, VisibleName } from './fields.ts'
import { defineOperation } from './operation.ts'
import { weekdays } from './policy.ts'
import { SendTemplate } from './send-template.ts'
import { untrusted } from './text.ts'

/** Recipients of one call. */
export const MAX_RECIPIENTS = 100_000

/** Messages in a second that a number may send unless the provider raised it. */
const USUAL_PER_SECOND = 80

/** A value that each contact has its own of, or a text for all: one of `text`, `field` and `attribute`. */
const BulkValue = z.strictObject({
  text: z.string().min(1).max(1024).optional().describe('The same text for all; or one of the others:'),
  field: z.enum(['name', 'phone', 'external_id']).optional().describe('A field of the contact.'),
  attribute: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe('Key of a custom field of the contact, such as `email`.'),
  fallback: z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe('For contacts without a value; without a fallback they are skipped.'),
})

const { header, buttons, cards: _cards, ...others } = SendTemplate.shape

const BulkTemplate = z.strictObject({
  ...others,
  header: z
    .strictObject({
      ...header.unwrap().shape,
      text: BulkValue.optional().describe('Value of a text header.'),
    })
    .optional()
    .describe('Values of the header.'),
  body: z.array(BulkValue).max(100).optional().describe("Values of the body's variables, in order."),
  variables: z
    .record(z.string().max(100), BulkValue)
    .optional()
    .describe('The same by name, in place of `body`.'),
  buttons: z
    .array(
      z.strictObject({
        ...buttons.unwrap().element.shape,
        text: BulkValue.optional().describe('Value of the variable at the end of a URL.'),
      }),
    )
    .max(10)
    .optional()
    .describe('Values of buttons that have a variable.'),
})

const NOT_A_TIME = { error: 'must be HH:MM, such as 09:00' }
const clock = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, NOT_A_TIME)

const Hours = z.strictObject({
  from: clock.describe('First minute, `HH:MM`.'),
  to: z
    .string()
    .regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, NOT_A_TIME)
    .describe('End, `HH:MM`, exclusive; after `from`.'),
  days: z.array(z.enum(weekdays)).min(1).max(7).optional().describe('Days of the week; all when absent.'),
})

export const leftOutReasons = [
  'not_found',
  'do_not_disturb',
  'consent_withdrawn',
  'unreachable',
  'double',
  'missing_value',
  'values_do_not_fit',
  'values_changed',
  'no_common_hour',
] as const

const LeftOut = z.object({
  reason: z
    .enum(leftOutReasons)
    .describe(
      '`do_not_disturb`: whatever the category of the template. `consent_withdrawn`: for marketing. ' +
        '`unreachable`: neither a phone nor an id at the messaging app. `double`: another contact with the ' +
        'same line or id gets it. `missing_value`: for a variable without a fallback. `values_do_not_fit`: ' +
        'too long for the template, such as more than 1024 characters of text. `values_changed`: different ' +
        'from the approved ones. `no_common_hour`: the hours never overlap across the time zones of the ' +
        'country.',
    ),
  count: z.int().describe('Contacts.'),
})

const examples = [
  {
    title: 'Send',
    input: {
      contact_ids: ['42', '43'],
      template: {
        name: 'order_update',
        language: 'en_US',
        body: [{ field: 'name' as const, fallback: 'there' }],
      },
    },
    output: {
      matched: 2,
      recipients: 2,
      left_out: [],
      broadcast: { ...broadcastExample, template_name: 'order_update', job_id: '1' },
      job: { ...jobExample, operation: 'messaging_send_bulk' },
    },
  },
  {
    title: 'What a dry run tells',
    input: {
      contact_ids: ['42', '43', '44'],
      template: {
        name: 'order_update',
        language: 'en_US',
        body: [{ field: 'name' as const, fallback: 'there' }],
      },
      hours: { from: '09:00', to: '20:00' },
    },
    output: {
      matched: 3,
      recipients: 2,
      left_out: [{ reason: 'do_not_disturb' as const, count: 1 }],
      countries: [
        { country: 'US', count: 1 },
        { country: 'DE', count: 1 },
      ],
      values: [{ variable: 'body[0]', missing: 1, fallback: 'there' }],
      text: 'Hello [name, or "there"], your order is on its way.',
      parts: [],
      previews: [{ contact_id: '42', name: 'Ada', text: 'Hello Ada, your order is on its way.' }],
    },
  },
]

export const sendBulk = defineOperation({
  name: 'messaging_send_bulk',
  cli: 'messages send-bulk',
  routes: ['POST /v1/messages/bulk'],
  since: '2026-10-01',
  stability: 'beta',
  summary: 'Send an approved template to many contacts',
  forModels:
    'Reaches customers. Dry run first: it renders ten messages and shows who is skipped and why; then ' +
    'send the same with the token of its plan. Values: `{"text": "Friday"}`, `{"field": "name", "fallback": ' +
    '"there"}` or `{"attribute": "city", "fallback": "your city"}`.',
  description:
    'The set of contacts is fixed by the call, also with `scheduled_at`, and a job sends each of them one message, ' +
    'shown as a broadcast (`messaging_get_broadcast`); the response is 202 with both. Each message is checked as ' +
    'by `messaging_send_template` when it is sent: contacts who opted out by then get none. ' +
    'Do-not-disturb contacts get no broadcast, whatever the category of the template. Several contacts ' +
    'with one phone line or id at the messaging app get one message, or none if one of them opted out. ' +
    "The job respects the number's customers per day, messages per second and `hours`, pauses when the " +
    'provider throttles, and stops when too many messages fail. A message whose outcome is unknown ' +
    'stays pending and is never sent again. Values are those at the time of sending; for a call that a ' +
    'person approved, or of an AI agent with a plan, those of its dry run: a contact whose values ' +
    'changed since gets none. The key also needs `mcp:read`, because values and previews come from ' +
    `contacts. ${KEPT_PLAN} At most ${MAX_RECIPIENTS.toLocaleString('en-US')} recipients. By filter it is ` +
    EXPENSIVE_READ,
  words:
    'broadcast, create, start or schedule a broadcast, campaign, newsletter, mass message, blast, ' +
    'marketing to everyone of a segment, send to all customers with a tag',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'send',
  repeatable: false,
  emits: [],
  input: z.object({
    ...target,
    template: BulkTemplate.describe('The template and the values of its variables.'),
    channel_id: Id.optional().describe('Channel; the default channel when absent.'),
    name: VisibleName(200).optional().describe('Name of the broadcast; by default that of the template.'),
    scheduled_at: ScheduledAt.optional(),
    hours: Hours.optional().describe(
      "Only at these times in the recipient's country, by the phone; if unknown, in the workspace's time " +
        'zone. In a country with several zones: only within the hours in all of them. 403 `phone_hidden` ' +
        'with hidden phone numbers, because hours reveal their countries.',
    ),
    per_second: z
      .int()
      .min(1)
      .max(1000)
      .default(USUAL_PER_SECOND)
      .describe(`Most messages a second; the provider's default for a number is ${USUAL_PER_SECOND}.`),
    stop_at_error_percent: z
      .int()
      .min(1)
      .max(100)
      .default(10)
      .describe('Stops when more than this percentage of the last messages failed, of at least 20.'),
    max_recipients: z.int().min(1).max(MAX_RECIPIENTS).optional().describe('409 where there would be more.'),
  }),
  output: z.object({
    matched: z.int().describe('Contacts that were named or matched.'),
    recipients: z.int().describe('Contacts that get a message.'),
    left_out: z.array(LeftOut).describe('Contacts that get none.'),
    broadcast: Broadcast.optional().describe('What is sent; absent in a dry run.'),
    job: Job.optional().describe('The job that sends it; absent in a dry run.'),
    starts_at: StartsAt.optional().describe(
      "Only in a dry run with `scheduled_at`: when it starts, in the workspace's time zone.",
    ),
    countries: z
      .array(
        z.object({
          country: z.string().nullable().describe('ISO 3166 code; null when unknown.'),
          count: z.int().describe('Recipients.'),
        }),
      )
      .optional()
      .describe('Only in a dry run: recipients by country; not with hidden phone numbers.'),
    values: z
      .array(
        z.object({
          variable: z.string().describe('Such as `body[0]`.'),
          missing: z.int().describe('Contacts without a value of their own.'),
          fallback: z.string().nullable().describe('What they get; null: they are left out.'),
        }),
      )
      .optional()
      .describe('Only in a dry run: values that come from contacts.'),
    text: untrusted(
      z.string().optional().describe('Only in a dry run: the body, with placeholders for values.'),
    ),
    parts: z
      .array(
        z.object({
          part: untrusted(z.string().describe('Such as `Footer`, or `Button 1 (URL)`.')),
          text: untrusted(z.string().describe('Its text, and where it leads.')),
        }),
      )
      .optional()
      .describe('Only in a dry run: the same beside the body.'),
    previews: z
      .array(
        z.object({
          contact_id: idOf('contact').describe('Contact id.'),
          name: ContactName,
          text: untrusted(z.string().describe('The body as this contact gets it.')),
        }),
      )
      .optional()
      .describe('Only in a dry run: up to ten messages.'),
  }),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['confirm_required', 'conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples,
})
