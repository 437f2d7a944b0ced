import { z } from 'zod'
import { idOf, StoredInstant } from './fields.ts'

/*
 * What the bridge of a bridged channel posts (docs/channels.md). It is no operation: a bridge has a token of its
 * channel, not an API key.
 */

const MEDIA_TYPES = ['IMAGE', 'VIDEO', 'AUDIO', 'DOCUMENT', 'STICKER'] as const

/** What is unusable of a customer's own data is left out: the message is taken nevertheless. */
const Person = z.strictObject({
  id: z.string().min(1).max(200).describe('The id by which the bridge knows the customer.'),
  name: z.string().nullish().describe('Kept when the contact has no name.'),
  phone: z.string().nullish().describe('Stored if the contact has none and no other contact has it.'),
  email: z.string().nullish().describe('Kept when the contact has none.'),
})

/** A time in UTC that the database can hold: a client's clock may give any year. */
const Time = StoredInstant('Leave it out when the time is not known.')

const required = (field: string) => ({ code: 'required', fix: `Send ${field}.` })

/** A customer's message. */
export const BridgeMessage = z
  .object({
    id: z
      .string()
      .min(1)
      .max(200)
      .describe("The bridge's own id: a repeat with the same id changes nothing."),
    from: Person,
    type: z.enum(['TEXT', ...MEDIA_TYPES]).default('TEXT'),
    text: z.string().max(65_536).nullish().describe('The text, or the caption of a file.'),
    media: z
      .strictObject({
        url: z
          .string()
          .min(1)
          .max(2048)
          .describe('A public https URL, from which the file is downloaded in the background.'),
        content_type: z.string().max(200).nullish(),
        file_name: z.string().max(255).nullish(),
      })
      .nullish(),
    reply_to_id: z
      .string()
      .min(1)
      .max(200)
      .nullish()
      .describe("The message that it replies to: our id, or the bridge's."),
    at: Time.nullish().describe('When the customer wrote it; now when absent.'),
  })
  .strict()
  .superRefine(({ type, text, media }, ctx) => {
    if (type === 'TEXT' && (text ?? '') === '')
      ctx.addIssue({ code: 'custom', path: ['text'], message: 'is required', params: required('text') })
    if (type !== 'TEXT' && !media)
      ctx.addIssue({ code: 'custom', path: ['media'], message: 'is required', params: required('media') })
    if (type === 'TEXT' && media)
      ctx.addIssue({
        code: 'custom',
        path: ['media'],
        message: 'is not allowed with the type TEXT',
        params: { code: 'not_allowed', fix: `Send a type of file: ${MEDIA_TYPES.join(', ')}.` },
      })
  })

/** What became of a reply that the bridge took. */
export const BridgeStatus = z
  .object({
    message_id: idOf('message').describe('`id` of the delivered reply.'),
    status: z.enum(['delivered', 'read', 'failed']),
    at: Time.nullish().describe('When it happened; now when absent.'),
    error: z.string().min(1).max(500).nullish().describe('Why it failed, for staff.'),
  })
  .strict()
