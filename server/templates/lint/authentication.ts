import { fine, found, type Rule } from './rule.ts'
import { isBlank, quote } from './text.ts'

const LONGEST_EXPIRATION = 90

export const authenticationRules: readonly Rule[] = [
  {
    id: 'authentication.body_text',
    severity: 'error',
    about: "No text of one's own: the provider writes it.",
    find: ({ draft: { body }, isCode }) =>
      isCode && !isBlank(body.text)
        ? found(
            'body.text',
            'The provider writes the text of AUTHENTICATION templates.',
            'Leave out body.text; add_security_recommendation adds a sentence.',
          )
        : fine,
    breaks: { base: 'code', set: { 'body.text': 'Your code is {{1}}.' }, at: 'body.text' },
    passes: { base: 'code', set: { body: {} } },
  },
  {
    id: 'authentication.body_examples',
    severity: 'error',
    about: "No samples: the text is the provider's.",
    find: ({ draft: { body }, isCode }) =>
      isCode && (body.examples ?? []).length > 0
        ? found(
            'body.examples',
            "The text of an AUTHENTICATION template is the provider's and takes no samples.",
            'Leave out body.examples.',
          )
        : fine,
    breaks: { base: 'code', set: { 'body.examples': ['123456'] }, at: 'body.examples' },
    passes: { base: 'code', set: { 'body.examples': [] } },
  },
  {
    id: 'authentication.header',
    severity: 'error',
    about: 'No header.',
    find: ({ draft: { header }, isCode }) =>
      isCode && header
        ? found('header', 'AUTHENTICATION templates have no header.', 'Leave out the header.')
        : fine,
    breaks: { base: 'code', set: { header: { format: 'TEXT', text: 'Your code' } }, at: 'header' },
    passes: { base: 'code' },
  },
  {
    id: 'authentication.footer_text',
    severity: 'error',
    about: 'No footer text; only the minutes that a code lasts.',
    find: ({ draft: { footer }, isCode }) =>
      isCode && !isBlank(footer?.text)
        ? found(
            'footer.text',
            'The provider writes the footer of AUTHENTICATION templates.',
            'Leave out footer.text; give code_expiration_minutes instead.',
          )
        : fine,
    breaks: { base: 'code', set: { 'footer.text': 'Lasts ten minutes' }, at: 'footer.text' },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 10 } },
  },
  {
    id: 'authentication.button',
    severity: 'error',
    about: 'Exactly one button, of the type `OTP`.',
    find: ({ draft: { buttons = [] }, isCode }) => {
      if (!isCode) return fine
      const fix = 'Have one button: {"type": "OTP", "otp_type": "COPY_CODE"}.'
      if (buttons.length !== 1)
        return found(
          'buttons',
          `AUTHENTICATION templates have one OTP button; here ${buttons.length === 0 ? 'is no button' : `are ${buttons.length} buttons`}.`,
          fix,
        )
      return buttons[0]!.type === 'OTP'
        ? fine
        : found(
            'buttons[0].type',
            `The button of an AUTHENTICATION template is of the type OTP, not ${buttons[0]!.type}.`,
            fix,
          )
    },
    breaks: { base: 'code', set: { buttons: [] }, at: 'buttons' },
    passes: { base: 'code' },
  },
  {
    id: 'authentication.carousel',
    severity: 'error',
    about: 'No carousel.',
    find: ({ draft: { carousel }, isCode }) =>
      isCode && carousel
        ? found('carousel', 'AUTHENTICATION templates have no carousel.', 'Leave out the carousel.')
        : fine,
    breaks: { base: 'code', set: { carousel: { cards: [] } }, at: 'carousel', also: ['carousel.top_level'] },
    passes: { base: 'carousel' },
  },
  {
    id: 'authentication.offer',
    severity: 'error',
    about: 'No limited-time offer.',
    find: ({ draft, isCode }) =>
      isCode && draft.limited_time_offer
        ? found(
            'limited_time_offer',
            'AUTHENTICATION templates have no limited-time offer.',
            'Leave out the offer.',
          )
        : fine,
    breaks: { base: 'code', set: { limited_time_offer: { text: 'Spring offer' } }, at: 'limited_time_offer' },
    passes: { base: 'offer' },
  },
  {
    id: 'footer.expiration_required',
    severity: 'error',
    about: 'A footer beside a code has the minutes that the code lasts.',
    find: ({ draft: { footer }, isCode }) =>
      isCode && footer && isBlank(footer.text) && footer.code_expiration_minutes === undefined
        ? found(
            'footer.code_expiration_minutes',
            'The footer is empty.',
            'Give code_expiration_minutes, or leave out the footer.',
          )
        : fine,
    breaks: { base: 'code', set: { footer: {} }, at: 'footer.code_expiration_minutes' },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 10 } },
  },
  {
    id: 'footer.expiration_range',
    severity: 'error',
    about: `A code lasts 1 to ${LONGEST_EXPIRATION} minutes.`,
    find: ({ draft: { footer }, isCode }) => {
      const minutes = footer?.code_expiration_minutes
      return !isCode || minutes === undefined || (minutes >= 1 && minutes <= LONGEST_EXPIRATION)
        ? fine
        : found(
            'footer.code_expiration_minutes',
            `A code lasts 1 to ${LONGEST_EXPIRATION} minutes, not ${minutes}.`,
            `Write ${minutes < 1 ? 1 : LONGEST_EXPIRATION}, or another number between.`,
          )
    },
    breaks: {
      base: 'code',
      set: { 'footer.code_expiration_minutes': 91 },
      at: 'footer.code_expiration_minutes',
    },
    passes: { base: 'code', set: { 'footer.code_expiration_minutes': 90 } },
  },
  {
    id: 'footer.expiration_category',
    severity: 'error',
    about: 'Minutes that a code lasts belong to `AUTHENTICATION`.',
    find: ({ draft: { footer }, isCode }) =>
      !isCode && footer?.code_expiration_minutes !== undefined
        ? found(
            'footer.code_expiration_minutes',
            'Only codes expire: the template is not of the category AUTHENTICATION.',
            'Leave out code_expiration_minutes.',
          )
        : fine,
    breaks: {
      set: { footer: { text: 'Thank you', code_expiration_minutes: 10 } },
      at: 'footer.code_expiration_minutes',
    },
    passes: { set: { footer: { text: 'Thank you' } } },
  },
  {
    id: 'buttons.otp_category',
    severity: 'error',
    about: 'OTP buttons belong to `AUTHENTICATION`.',
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button }) =>
        !isCode && button.type === 'OTP'
          ? found(
              `${path}.type`,
              'Only AUTHENTICATION templates have an OTP button.',
              'Choose the category AUTHENTICATION, or another type of button.',
            )
          : fine,
      ),
    breaks: { set: { buttons: [{ type: 'OTP' }] }, at: 'buttons[0].type' },
    passes: { base: 'code' },
  },
  {
    id: 'otp.apps_required',
    severity: 'error',
    about: 'ONE_TAP and ZERO_TAP name the apps that take the code.',
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button: { type, otp_type: kind = 'COPY_CODE', supported_apps: apps = [] } }) =>
        isCode && type === 'OTP' && kind !== 'COPY_CODE' && apps.length === 0
          ? found(
              `${path}.supported_apps`,
              `${kind} names no app that takes the code.`,
              'Give package_name and signature_hash of the app, or choose COPY_CODE.',
            )
          : fine,
      ),
    breaks: { base: 'code', set: { 'buttons[0].otp_type': 'ONE_TAP' }, at: 'buttons[0].supported_apps' },
    passes: {
      base: 'code',
      set: {
        'buttons[0].otp_type': 'ONE_TAP',
        'buttons[0].supported_apps': [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
      },
    },
  },
  ...appRules(),
]

/** Apps are looked at where they are sent: not beside COPY_CODE, where `buttons.unused` tells of them. */
function appRules(): Rule[] {
  const rule = (
    name: string,
    field: 'package_name' | 'signature_hash',
    form: RegExp,
    about: string,
    fix: string,
    bad: string,
  ): Rule => ({
    id: `otp.${name}`,
    severity: 'error',
    about,
    find: ({ buttons, isCode }) =>
      buttons.flatMap(({ path, button }) =>
        !isCode || button.type !== 'OTP' || (button.otp_type ?? 'COPY_CODE') === 'COPY_CODE'
          ? fine
          : (button.supported_apps ?? []).flatMap((app, i) =>
              form.test(app[field])
                ? fine
                : found(
                    `${path}.supported_apps[${i}].${field}`,
                    `${quote(app[field])} is no ${name.replace('_', ' ')}.`,
                    fix,
                  ),
            ),
      ),
    breaks: {
      base: 'code',
      set: { ...tap, [`buttons[0].supported_apps[0].${field}`]: bad },
      at: `buttons[0].supported_apps[0].${field}`,
    },
    passes: { base: 'code', set: tap },
  })
  const tap = {
    'buttons[0].otp_type': 'ZERO_TAP',
    'buttons[0].supported_apps': [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
  }
  return [
    rule(
      'package_name',
      'package_name',
      /^[A-Za-z]\w*(\.[A-Za-z]\w*)+$/,
      'The name of an Android package: two or more parts of letters, digits and underscores, with dots between.',
      'Write it as the app has it, such as "com.example.shop".',
      'shop',
    ),
    rule(
      'signature_hash',
      'signature_hash',
      /^[A-Za-z0-9+/=]{11}$/,
      'A signature hash has 11 characters of base64.',
      "Write the 11 characters that the app's signing key makes.",
      'K8a',
    ),
  ]
}
