import { z } from 'zod'
import { Instant, VisibleName } from './fields.ts'

const Fill = z.strictObject({
  text: z.string().min(1).max(1024).optional().describe('Value of the variable of a text header.'),
  media_url: z
    .url({ protocol: /^https$/ })
    .max(2000)
    .optional()
    .describe('Public https URL of the image, video or document.'),
  media_handle: z.string().min(1).max(4000).optional().describe('Media id at the provider instead.'),
  file_name: VisibleName(200).optional().describe('Name of a document.'),
  latitude: z.number().min(-90).max(90).optional().describe('Latitude of a location header.'),
  longitude: z.number().min(-180).max(180).optional().describe('Longitude of a location header.'),
  name: z.string().max(1000).optional().describe('Name of the place.'),
  address: z.string().max(1000).optional().describe('Address of the place.'),
})
const BodyFill = z.array(z.string().min(1).max(1024)).max(100)
const ButtonFill = z
  .array(
    z.strictObject({
      index: z.int().min(0).max(9).describe('Position of the button, from 0.'),
      text: z.string().min(1).max(2000).optional().describe('Value of the variable at the end of a URL.'),
      payload: z.string().min(1).max(256).optional().describe('Payload that a quick reply returns.'),
      coupon_code: z.string().min(1).max(20).optional().describe('Code of a copy-code button.'),
    }),
  )
  .max(10)

/** A template with the values of its variables, as a send takes it. */
export const SendTemplate = z.strictObject({
  name: z.string().min(1).max(512).describe('Template name.'),
  language: z.string().min(1).max(20).describe('Language code, such as `en_US`.'),
  header: Fill.optional().describe('Values of the header.'),
  body: BodyFill.optional().describe("Values of the body's variables, in order."),
  variables: z
    .record(z.string().max(100), z.string().min(1).max(1024))
    .optional()
    .describe(
      'The same by name, in place of `body`: `{"first_name": "Ada"}`, or `{"1": "Ada"}` for `{{1}}`.',
    ),
  buttons: ButtonFill.optional().describe('Values of buttons that have a variable.'),
  offer_expires_at: Instant.optional().describe('When a limited-time offer ends.'),
  cards: z
    .array(
      z.strictObject({
        header: Fill.optional().describe('Image or video of the card.'),
        body: BodyFill.optional().describe("Values of the card's variables."),
        buttons: ButtonFill.optional().describe("Values of the card's buttons."),
      }),
    )
    .max(10)
    .optional()
    .describe('Values of each carousel card, in order.'),
})
