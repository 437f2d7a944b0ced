import { z } from 'zod'
import { idOf, Timestamp } from './fields.ts'
import { Interactive } from './interactive.ts'
import { untrusted } from './text.ts'

/*
 * What a message has beyond text, by kind, and where it came from. `text` says in words all that a customer sent; what
 * staff offer to tap is in `content` alone.
 */

const given = (what: string) => untrusted(z.string().nullable().describe(what))
const is = <K extends string>(kind: K) => z.literal(kind).describe('What it is.')
const Kind = given('Such as `HOME` or `WORK`.')

const Card = z
  .object({
    name: untrusted(z.string().nullable().describe('Name.'), { phone: 'name' }),
    company: given('Company.'),
    title: given('Position in the company.'),
    phones: z
      .array(
        z.object({
          phone: untrusted(z.string().describe('Number, as it was sent.'), { phone: 'text' }),
          kind: Kind,
          chatapp_number: untrusted(
            z
              .string()
              .nullable()
              .describe('Digits of its international number in the messaging app, if it has one.'),
            { phone: 'number' },
          ),
        }),
      )
      .describe('Phone numbers.'),
    emails: z
      .array(z.object({ email: untrusted(z.string().describe('Address.')), kind: Kind }))
      .describe('E-mail addresses.'),
    addresses: z
      .array(z.object({ address: untrusted(z.string().describe('Address in one line.')), kind: Kind }))
      .describe('Postal addresses.'),
    urls: z
      .array(z.object({ url: untrusted(z.string().describe('URL.')), kind: Kind }))
      .describe('Web pages.'),
    birthday: given('Birthday, as it was sent.'),
    own: z.boolean().describe("True: the customer's own card, sent on request; its number is now theirs."),
  })
  .describe('A contact card.')

const OrderItem = z.object({
  product_id: given('Id of the product in the catalog of the business.'),
  quantity: z.number().nullable().describe('How many.'),
  price: z.number().nullable().describe('Price of one.'),
  currency: given('ISO 4217 code.'),
})

const kinds = [
  z.object({
    kind: is('contacts'),
    contacts: z.array(Card).describe('The cards; `crm_upsert_contact` adds one as a contact.'),
  }),
  z.object({
    kind: is('form'),
    name: given('Name of the form.'),
    values: z
      .array(
        z.object({
          field: untrusted(z.string().describe('Name of the field in the form.')),
          label: untrusted(z.string().describe('The name in words.')),
          value: untrusted(z.string().describe('What the customer entered or chose.')),
        }),
      )
      .describe('The answers in order.'),
  }),
  z.object({
    kind: is('button'),
    payload: given('What the button stands for: its id, or the payload of the template.'),
    title: given('Its text.'),
  }),
  z.object({
    kind: is('list'),
    row_id: given('Id of the row.'),
    title: given('Its title.'),
    description: given('Its description.'),
  }),
  z.object({
    kind: is('order'),
    catalog_id: given('Catalog.'),
    note: given('What the customer wrote with it.'),
    items: z.array(OrderItem).describe('The products.'),
    totals: z
      .array(
        z.object({
          currency: untrusted(z.string().describe('ISO 4217 code.')),
          amount: z.number().describe('Sum of the items that have a price.'),
        }),
      )
      .describe('One for each currency.'),
  }),
  z.object({
    kind: is('location'),
    latitude: z.number().nullable().describe('Degrees north.'),
    longitude: z.number().nullable().describe('Degrees east.'),
    name: given('Name of the place.'),
    address: given('Its address.'),
    url: given('Its page.'),
  }),
  z.object({
    kind: is('call_permission'),
    accepted: z.boolean().describe('True: the business may call.'),
    expires_at: Timestamp.nullable().describe('Until when.'),
    automatic: z.boolean().describe('True: the app answered, because the business had called before.'),
  }),
  z.object({ kind: is('audio'), voice: z.boolean().describe('True: a voice message.') }),
  z.object({ kind: is('sticker'), animated: z.boolean().describe('True: it moves.') }),
  z.object({ kind: is('notice'), notice: given('What the provider tells of the customer.') }),
  z.object({
    kind: is('unsupported'),
    type: given('What it is, if the provider says so.'),
    code: z.int().nullable().describe("Code of the provider's error."),
    reason: untrusted(z.string().nullable().describe('Why it cannot be shown, in words of the provider.'), {
      phone: 'text',
    }),
  }),
] as const

const MessageContent = z.discriminatedUnion('kind', [...kinds, Interactive]).meta({ id: 'MessageContent' })

const Ad = z
  .object({
    ad_id: given('Id of the ad or post.'),
    type: given('`ad` or `post`.'),
    url: given('URL.'),
    headline: given('Headline.'),
    text: given('Text.'),
    media_url: given('Image or video.'),
    click_id: given('Click id, for conversions.'),
  })
  .meta({ id: 'Ad' })

const Product = z.object({
  catalog_id: given('Catalog.'),
  product_id: given('Id of the product in the catalog of the business.'),
})

/** Stands for the name of who wrote in the phone app of a number, which does not say. */
export const PHONE_APP_NAME = 'Phone app'

/** The members of a message that its content is in. */
export const contentFields = {
  content: MessageContent.nullable().describe(
    'What the message has beyond text, by its `kind` (schema `MessageContent`): what the customer sent, or what ' +
      'staff offered to tap; null for texts, files and templates.',
  ),
  ad: Ad.optional().describe(
    'The ad or post that brought the customer with this message; absent without one.',
  ),
  product: Product.optional().describe('The product that the message asks about; absent without one.'),
  phone_app: z
    .literal(true)
    .optional()
    .describe('A colleague wrote it in the phone app of the number; absent if not.'),
  author: z
    .object({
      contact_id: idOf('contact').describe('Their contact.'),
      name: untrusted(z.string().nullable().describe('Their name then.'), { phone: 'name' }),
    })
    .optional()
    .describe('In a group: which member wrote it; absent elsewhere.'),
  held: z
    .enum(['held_for_quality_assessment', 'paused'])
    .optional()
    .describe(
      'Why the provider has not delivered a template yet: it checks the quality of a new one first, or paused it. ' +
        'Wait, and send no repeat; after a pause, send another template. Absent once it is delivered.',
    ),
  forwarded: z
    .enum(['once', 'often'])
    .optional()
    .describe('The customer forwarded it from another chat; absent if not.'),
}

const Stored = z.object(contentFields)
/** As it is stored: what is absent is null. */
export type StoredContent = Partial<z.input<typeof Stored>>
export type Content = z.input<typeof MessageContent>
